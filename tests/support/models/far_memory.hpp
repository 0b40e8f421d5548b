// The memory of a pretended device that the host cannot address: its pages are
// PROT_NONE except while kernels or copies run. Whoever touches it from the
// host, which on a GPU without managed memory is a fault too, ends the process
// with the call stack.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace troupe::testing {

class FarMemory {
public:
  /// Reserves addresses; takes no memory.
  FarMemory();
  FarMemory(const FarMemory&) = delete;
  FarMemory& operator=(const FarMemory&) = delete;

  /// Returns zeroed pages. Throws std::bad_alloc.
  void* take(std::size_t size_bytes);
  void give(void* data);
  bool owns(const void* data) const;

  /// Makes the memory reachable while it exists; nests, on any thread.
  class Reach {
  public:
    explicit Reach(FarMemory& memory);
    ~Reach();
    Reach(const Reach&) = delete;
    Reach& operator=(const Reach&) = delete;

  private:
    FarMemory& memory_;
  };

private:
  void protect(int rights) const;

  std::byte* arena_;
  std::mutex mutex_;
  std::size_t end_ = 0; ///< bytes of the arena that were ever used
  int reached_ = 0;
  std::map<std::size_t, std::size_t> sizes_;     ///< of blocks, by offset
  std::multimap<std::size_t, std::size_t> free_; ///< offsets by size
};

} // namespace troupe::testing
