// Texts that end a response (`rollout.stop`), found across token boundaries:
// the text of a response grows token by token, and a tail that could begin a
// stop text is kept.
#pragma once

#include "models/text/tokenizer.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {

/// Immutable; may be used from any thread.
class StopTexts {
public:
  /// Takes a non-empty list of non-empty texts.
  StopTexts(Tokenizer tokenizer, std::vector<std::string> texts);

  /// Watches one response.
  class Watch {
  public:
    explicit Watch(const StopTexts& stops);
    /// Appends a token and returns true if the response now contains a stop
    /// text. The token is part of the response.
    bool push(std::int32_t id);

  private:
    const StopTexts* stops_;
    TextStream stream_;
    std::string tail_; ///< long enough for the start of a stop text
  };

private:
  Tokenizer tokenizer_;
  std::vector<std::string> texts_;
  std::size_t longest_ = 0; ///< bytes
};

/// Returns "length", "eos", or "stop" if neither the limit nor an end token
/// ended the sequence.
const char* finish_reason(bool truncated,
                          std::span<const std::int32_t> sequence_ids,
                          const Tokenizer& tokenizer);

} // namespace troupe::models
