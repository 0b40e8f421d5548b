// The tokens of one generation pass as the layers get them: unchanged, or, if
// the device captures passes (models/kernels/graph_capture.hpp) and each slot
// has at most one token, padded up to one of a few shapes. Padding tokens
// belong to slots that have no token in this pass and write to a position that
// no token has.
#pragma once

#include "models/kernels/decode_attention.hpp"
#include "models/kernels/graph_capture.hpp"
#include "models/kernels/token_draw.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace troupe::net {
class Collectives;
} // namespace troupe::net

namespace troupe::models {

/// Shape of a pass's kernels. Passes of one shape differ only in the content of
/// device memory.
struct PassShape {
  std::int64_t tokens = 0;
  std::int64_t keys = 0;                 ///< per token, masked ones included
  std::optional<DrawFilters> draws = {}; ///< for each token; none: no draw

  bool operator==(const PassShape&) const = default;
};

/// Rows of a pass whose next tokens the device draws; the last stage's, where
/// Backend::draws().
struct PassDraw {
  std::span<const std::int64_t> rows_N = {}; ///< empty: none
  std::span<const DrawKey> keys_N = {};
  DrawFilters filters = {};
};

/// The kernels of a pass, between the messages of a pipeline.
struct PassWork {
  bool embeds = false;
  std::optional<DrawFilters> draws; ///< a token for each row
};

class DecodePass {
public:
  /// Starts a pass. Tokens of a slot are adjacent with rising positions.
  void begin(std::span<const DecodeToken> tokens);
  bool has_one_token_per_slot() const {
    return groups_.size() == tokens_.size();
  }
  /// Pads tokens and keys up to powers of two, at most to the cache's slots and
  /// capacity. For passes with one token per slot.
  PassShape round_up(const KvCache& cache);

  std::span<const DecodeToken> tokens() const {
    return tokens_;
  }
  std::span<const DecodeGroup> groups() const {
    return groups_;
  }
  std::int64_t num_tokens() const {
    return static_cast<std::int64_t>(tokens_.size());
  }

private:
  void append(const DecodeToken& token);
  void fill_up(std::int64_t count, const KvCache& cache);

  std::vector<DecodeToken> tokens_;
  std::vector<DecodeGroup> groups_;
  std::vector<bool> has_token_; ///< per slot, scratch
};

/// Captured passes by shape: an LRU cache of at most `most` graphs.
class RecordedPasses {
public:
  explicit RecordedPasses(std::size_t most) : most_(most) {}

  /// Returns the graph of this shape, or null.
  GraphCapture* find(const PassShape& shape);
  void add(const PassShape& shape, std::unique_ptr<GraphCapture> graph);
  void clear() {
    known_.clear();
  }

private:
  using Known = std::pair<PassShape, std::unique_ptr<GraphCapture>>;

  std::size_t most_;
  std::vector<Known> known_; ///< most recently used last
};

/// Passes as one launch each.
struct CapturedPasses {
  std::unique_ptr<GraphRecorder> recorder; ///< null: they are not captured
  bool is_refused = false;
  std::shared_ptr<net::Collectives> group; ///< of their sums; outlives them
  RecordedPasses passes{16};
  std::vector<std::uintptr_t> places; ///< that they point to
};

} // namespace troupe::models
