// Host memory of one process that keeps the rows produced here until their
// step commits (I6): rows by (step, key, sample). Thread-safe. Rows are put as
// they come and never copied before somebody asks for another packing.
#pragma once

#include "config/ids.hpp"
#include "net/rows.hpp"

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

/// One key of some samples without copying: pieces in the asked order,
/// neighbours joined.
struct GatheredColumn {
  std::string key;
  DType dtype = DType::f32;
  std::vector<std::uint32_t> lengths; ///< [N] elements of each sample
  std::vector<Piece> pieces;
};

class Stash {
public:
  Stash();
  ~Stash();
  Stash(const Stash&) = delete;
  Stash& operator=(const Stash&) = delete;

  /// Keeps `rows` (shared, not copied). Throws InvariantError when one of
  /// these (step, key, sample) is already here, or when rows do not validate.
  void put(StepId step, Rows rows);
  /// Packed columns of `keys` in the order of `samples`; shares the memory
  /// when the rows were put in just this order. Throws InvariantError that
  /// names the first row that is not here.
  Rows get(StepId step, std::span<const std::string> keys,
           std::span<const SampleId> samples) const;
  /// As `get`, but points into the rows as they are.
  std::vector<GatheredColumn> gather(StepId step,
                                     std::span<const std::string> keys,
                                     std::span<const SampleId> samples) const;
  bool has(StepId step, const std::string& key, SampleId sample) const;
  /// Elements of each sample, for the metadata that the master sees.
  std::vector<std::uint32_t> lengths(StepId step, const std::string& key,
                                     std::span<const SampleId> samples) const;
  /// Frees the rows of a step (memory that somebody still reads stays until
  /// then). Dropping what is not there is no error.
  void drop(StepId step);
  /// Frees everything: a new incarnation starts without rows.
  void clear();
  /// Bytes of data that the rows here refer to.
  std::uint64_t size_bytes() const;
  std::size_t num_steps() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace troupe::net
