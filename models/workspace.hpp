// Scratch memory of a device: blocks handed out in order and taken back all at
// once, or down to a mark. After the first micro-batch nothing is allocated.
// Counted is what is handed out: between calls that is nothing, and the pages
// wait for the next one.
#pragma once

#include "models/aligned_floats.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace troupe::models {

class Workspace {
public:
  /// Null: the system's memory.
  explicit Workspace(const net::BlockMemory* memory = nullptr)
    : memory_(memory) {}

  /// A place to come back to.
  struct Mark {
    std::size_t chunk = 0;
    std::int64_t used = 0;
    std::int64_t taken = 0; ///< floats of all blocks
  };

  /// `count` floats, 64-byte aligned, unspecified content; valid until `reset`
  /// or a `rewind` to an earlier mark.
  float* take(std::int64_t count);
  Mark mark() const {
    return at_;
  }
  void rewind(Mark mark) {
    at_ = mark;
    count_taken();
  }
  /// Takes everything back; several chunks become one of their total size.
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

/// Of the micro-batches that are in flight on one device. Its engines share
/// them: one of them computes at a time.
class Workspaces {
public:
  Workspace& of(std::size_t micro_batch, const net::BlockMemory* memory) {
    while (all_.size() <= micro_batch)
      all_.emplace_back(memory);
    return all_[micro_batch];
  }
  /// Takes everything back.
  void reset() {
    for (Workspace& workspace : all_)
      workspace.reset();
  }

private:
  std::deque<Workspace> all_; ///< references stay valid
};

} // namespace troupe::models
