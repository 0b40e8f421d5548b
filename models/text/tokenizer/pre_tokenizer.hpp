// Splits normalized text into the pieces that the model encodes one by one.
#pragma once

#include "models/io/json_at.hpp"
#include "models/text/tokenizer/regex.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models::tokenizer {

/// Text in progress: pieces are ranges of `text`, in order, none empty.
struct Pieces {
  std::string text;
  std::vector<Range> ranges;
  bool at_start = false; ///< `text` is the beginning of the whole input
};

/// Treatment of the matches of a split's pattern (HF's names).
enum class SplitBehavior {
  removed,
  isolated,
  merged_with_previous,
  merged_with_next,
  contiguous,
};

class PreTokenizer {
public:
  struct Step {
    virtual ~Step() = default;
    virtual void apply(Pieces& pieces) const = 0;
  };

  PreTokenizer() = default;
  /// Reads `pre_tokenizer` (null: no splitting). Throws ConfigError naming the
  /// path and the unsupported component.
  explicit PreTokenizer(const internal::JsonAt& json);

  void apply(Pieces& pieces) const;
  /// Returns true if the last step is ByteLevel: the model gets bytes.
  bool byte_level() const {
    return byte_level_;
  }

private:
  void read(const internal::JsonAt& json);
  void read_byte_level(const internal::JsonAt& json);
  bool read_simple(const internal::JsonAt& json, const std::string& type);

  std::vector<std::shared_ptr<const Step>> steps_;
  bool byte_level_ = false;
};

/// Splits a text of `size` bytes at `matches` according to `behavior`.
std::vector<Range> split_ranges(std::size_t size,
                                const std::vector<Range>& matches, bool invert,
                                SplitBehavior behavior);

/// Returns a pattern object {"String": ...} or {"Regex": ...} as a Regex.
/// Throws ConfigError.
Regex read_pattern(const internal::JsonAt& pattern);

} // namespace troupe::models::tokenizer
