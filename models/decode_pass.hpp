// The rows of one pass while generating, as the layers get them: as they came,
// or, where the device records passes (models/recording.hpp) and each slot has
// one row at most, rounded up to one of few shapes. Rows that fill up belong to
// slots that have none in this pass and write where no token stands.
#pragma once

#include "models/decode_attention.hpp"
#include "models/recording.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace troupe::models {

/// What kernels of a pass are asked for. Passes of one shape differ only in
/// what the device's memory holds.
struct PassShape {
  std::int64_t rows = 0;
  std::int64_t keys = 0; ///< of each row, those of no token included

  bool operator==(const PassShape&) const = default;
};

class DecodePass {
public:
  /// Rows of a slot are neighbours with rising positions.
  void begin(std::span<const DecodeRow> rows);
  bool one_row_a_slot() const {
    return groups_.size() == rows_.size();
  }
  /// Rows and keys up to powers of two, as far as the cache has slots and
  /// places. Of a pass with one row a slot.
  PassShape round_up(const KvCache& cache);

  std::span<const DecodeRow> rows() const {
    return rows_;
  }
  std::span<const DecodeGroup> groups() const {
    return groups_;
  }
  std::int64_t num_rows() const {
    return static_cast<std::int64_t>(rows_.size());
  }

private:
  void append(const DecodeRow& row);
  void fill_up(std::int64_t rows, const KvCache& cache);

  std::vector<DecodeRow> rows_;
  std::vector<DecodeGroup> groups_;
  std::vector<bool> has_row_; ///< of slots, scratch
};

/// Recordings of passes by their shape; of more than `most` the one goes that
/// was used longest ago.
class RecordedPasses {
public:
  explicit RecordedPasses(std::size_t most) : most_(most) {}

  /// Null: none of this shape.
  Recording* find(const PassShape& shape);
  void add(const PassShape& shape, std::unique_ptr<Recording> recording);
  void clear() {
    known_.clear();
  }

private:
  using Known = std::pair<PassShape, std::unique_ptr<Recording>>;

  std::size_t most_;
  std::vector<Known> known_; ///< the last one was used last
};

} // namespace troupe::models
