// A POSIX shared memory segment that processes of one user map by name.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace troupe::net {

class SharedMemory {
public:
  /// Creates the segment, or maps the one that a peer has just created; fresh
  /// memory is zeroed and actually allocated (no signal on a full /dev/shm).
  /// Throws FailureError.
  SharedMemory(std::string name, std::size_t size_bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::span<std::byte> bytes() const noexcept {
    return {data_, size_bytes_};
  }
  /// Removes the name; mappings stay valid. A second call is no error.
  void unlink() noexcept;

private:
  std::string name_;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

} // namespace troupe::net
