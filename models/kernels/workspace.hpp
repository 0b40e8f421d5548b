// Scratch memory of a device: blocks are handed out in order and freed all at
// once or down to a mark. After the first micro-batch nothing is allocated.
// Only blocks handed out are counted: between calls that is nothing, and the
// pages are kept for the next call.
#pragma once

#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/typed_ptr.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace troupe::models {

class Workspace {
public:
  /// Allocates from `memory`; null: system memory.
  explicit Workspace(const net::BlockMemory* memory = nullptr)
    : memory_(memory) {}

  /// A position to rewind to.
  struct Mark {
    std::size_t chunk = 0;
    std::int64_t used = 0;
    std::int64_t taken = 0; ///< floats of all blocks
  };

  /// Returns `count` floats, 64-byte aligned, of unspecified content; valid
  /// until `reset` or a `rewind` to an earlier mark.
  float* take(std::int64_t count);
  /// Returns `count` numbers of a type likewise.
  TypedPtr take(std::int64_t count, DType type) {
    const auto bytes = count * static_cast<std::int64_t>(size_bytes(type));
    return {take((bytes + 3) / 4), type};
  }
  Mark mark() const {
    return at_;
  }
  void rewind(Mark mark) {
    at_ = mark;
    count_taken();
  }
  /// Frees all blocks; several chunks become one of their total size.
  void reset();
  std::int64_t capacity() const;

private:
  void add_chunk(std::int64_t count);
  void count_taken() {
    charge_.set(static_cast<std::uint64_t>(at_.taken) * sizeof(float));
  }

  const net::BlockMemory* memory_;
  std::vector<AlignedFloats> chunks_;
  Mark at_;
  net::MemoryCharge charge_;
};

/// Workspaces of the micro-batches that are in flight on one device, shared by
/// its engines: one of them computes at a time.
class Workspaces {
public:
  Workspace& of(std::size_t micro_batch, const net::BlockMemory* memory) {
    while (all_.size() <= micro_batch)
      all_.emplace_back(memory);
    return all_[micro_batch];
  }
  /// Frees all blocks.
  void reset() {
    for (Workspace& workspace : all_)
      workspace.reset();
  }

private:
  std::deque<Workspace> all_; ///< references stay valid
};

} // namespace troupe::models
