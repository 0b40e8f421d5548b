// Scratch memory of one engine: blocks handed out in order and taken back all
// at once, or down to a mark. After the first micro-batch nothing is allocated.
#pragma once

#include "models/aligned_floats.hpp"

#include <cstddef>
#include <cstdint>
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
  };

  /// `count` floats, 64-byte aligned, unspecified content; valid until `reset`
  /// or a `rewind` to an earlier mark.
  float* take(std::int64_t count);
  Mark mark() const {
    return at_;
  }
  void rewind(Mark mark) {
    at_ = mark;
  }
  /// Takes everything back; several chunks become one of their total size.
  void reset();
  std::int64_t capacity() const;

private:
  void add_chunk(std::int64_t count);

  const net::BlockMemory* memory_;
  std::vector<AlignedFloats> chunks_;
  Mark at_;
};

} // namespace troupe::models
