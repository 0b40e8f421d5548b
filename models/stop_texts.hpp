// Texts that end an answer (`rollout.stop`), found wherever token borders lie:
// the text of an answer grows token by token, and what could be the beginning
// of a stop text is remembered.
#pragma once

#include "models/tokenizer.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {

/// Immutable; used from any thread.
class StopTexts {
public:
  /// `texts` are not empty, nor is any of them.
  StopTexts(Tokenizer tokenizer, std::vector<std::string> texts);

  /// Watches one answer.
  class Watch {
  public:
    explicit Watch(const StopTexts& stops);
    /// Whether the answer with this token holds a stop text. The token is part
    /// of the answer.
    bool push(std::int32_t id);

  private:
    const StopTexts* stops_;
    TextStream stream_;
    std::string tail_; ///< as much as a stop text may begin in
  };

private:
  Tokenizer tokenizer_;
  std::vector<std::string> texts_;
  std::size_t longest_ = 0; ///< bytes
};

/// "length", "eos", or "stop" where neither the limit nor an end token ended
/// the sequence.
const char* finish_reason(bool truncated,
                          std::span<const std::int32_t> sequence_ids,
                          const Tokenizer& tokenizer);

} // namespace troupe::models
