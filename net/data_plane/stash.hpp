// Row store in host memory: keeps the rows that this process produced until
// their step commits (I6), by (step, key, sample). Thread-safe. Rows are stored
// as they arrive and never copied unless a reader asks for another packing.
#pragma once

#include "config/base/ids.hpp"
#include "net/base/rows.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::net {

/// A run of bytes inside a buffer that it keeps alive.
struct Piece {
  Buffer data;
};

/// One key of some samples without copying: pieces in the requested order,
/// adjacent ones joined.
struct GatheredColumn {
  std::string key;
  DType dtype = DType::f32;
  std::vector<std::uint32_t> lengths; ///< [N] number of elements of each sample
  std::vector<Piece> pieces;
};

class Stash {
public:
  Stash();
  ~Stash();
  Stash(const Stash&) = delete;
  Stash& operator=(const Stash&) = delete;

  /// Stores `rows` (shared, not copied). Throws InvariantError if one of these
  /// (step, key, sample) is already stored, or if the rows are invalid.
  void put(StepId step, Rows rows);
  /// Returns packed columns of `keys` in the order of `samples`; shares the
  /// memory if the rows were stored in exactly this order. Throws
  /// InvariantError that names the first missing row.
  Rows get(StepId step, std::span<const std::string> keys,
           std::span<const SampleId> samples) const;
  /// Returns the same as `get`, but as pointers into the stored rows.
  std::vector<GatheredColumn> gather(StepId step,
                                     std::span<const std::string> keys,
                                     std::span<const SampleId> samples) const;
  bool has(StepId step, const std::string& key, SampleId sample) const;
  /// Returns the number of elements of each sample, for the metadata that the
  /// master receives.
  std::vector<std::uint32_t> lengths(StepId step, const std::string& key,
                                     std::span<const SampleId> samples) const;
  /// Frees the rows of a step (memory that is still being read stays until
  /// then). Dropping a missing step is no error.
  void drop(StepId step);
  /// Frees everything: a new incarnation starts without rows.
  void clear();
  /// Returns the bytes of data that the stored rows refer to.
  std::uint64_t size_bytes() const;
  std::size_t num_steps() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace troupe::net
