#include "net/base/shared_memory.hpp"

#include "config/base/error.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe::net {

SharedMemory::SharedMemory(std::string name, std::size_t size_bytes)
  : name_(std::move(name)),
    size_bytes_(size_bytes) {
  const auto fail = [&](const char* doing, int error) {
    throw FailureError({error == ENOSPC ? Errc::out_of_memory : Errc::io,
                        "shared memory " + name_,
                        std::string(doing) + " " + std::to_string(size_bytes)
                          + " bytes failed: " + std::strerror(error),
                        ""});
  };
  const int descriptor
    = ::shm_open(name_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0)
    fail("opening", errno);
  const int error
    = ::posix_fallocate(descriptor, 0, static_cast<off_t>(size_bytes));
  void* data = error != 0 ? MAP_FAILED
                          : ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                                   MAP_SHARED, descriptor, 0);
  const int map_error = errno;
  ::close(descriptor);
  if (data == MAP_FAILED) {
    unlink();
    fail("mapping", error != 0 ? error : map_error);
  }
  data_ = static_cast<std::byte*>(data);
}

SharedMemory::~SharedMemory() {
  ::munmap(data_, size_bytes_);
}

void SharedMemory::unlink() noexcept {
  ::shm_unlink(name_.c_str());
}

} // namespace troupe::net
