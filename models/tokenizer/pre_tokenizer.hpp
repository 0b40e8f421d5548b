// Cuts normalised text into the pieces that the model sees one by one.
#pragma once

#include "models/internal/json_at.hpp"
#include "models/tokenizer/regex.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models::tokenizer {

/// Text under work: pieces are ranges of `text`, in order, none empty.
struct Pieces {
  std::string text;
  std::vector<Range> ranges;
  bool at_start = false; ///< `text` begins where the whole input begins
};

/// How a split treats the matches of its pattern (HF's names).
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
  /// Reads `pre_tokenizer` (null: nothing is cut); ConfigError naming the path
  /// and the component that is not supported.
  explicit PreTokenizer(const internal::JsonAt& json);

  void apply(Pieces& pieces) const;
  /// The last step is ByteLevel: the model sees bytes.
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

/// Cuts `range` (relative matches inside it) the way `behavior` says.
std::vector<Range> split_ranges(std::size_t size,
                                const std::vector<Range>& matches, bool invert,
                                SplitBehavior behavior);

/// A pattern object {"String": ..} or {"Regex": ..} as a Regex; ConfigError.
Regex read_pattern(const internal::JsonAt& pattern);

} // namespace troupe::models::tokenizer
