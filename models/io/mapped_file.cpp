#include "models/io/mapped_file.hpp"

#include "config/base/error.hpp"
#include "models/io/lost_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace troupe::models {

namespace {

[[noreturn]] void cannot_map(const std::filesystem::path& path,
                             const std::string& why) {
  throw ConfigError({.place = {path.string(), 0},
                     .path = "",
                     .expected = "a readable file",
                     .got = why,
                     .hint = "another name, or reading rights"});
}

/// Closes a descriptor at the end of a scope.
struct MapDescriptor {
  int fd;
  ~MapDescriptor() {
    ::close(fd);
  }
};

} // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    cannot_map(path, std::strerror(errno));
  const MapDescriptor guard{fd};
  struct stat info {};
  if (::fstat(fd, &info) != 0)
    cannot_map(path, std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    cannot_map(path, "no regular file");
  if (info.st_size == 0)
    return;
  const auto size = static_cast<std::size_t>(info.st_size);
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED)
    cannot_map(path, std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(memory), size};
  name_mapping(bytes_, path.string());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
  : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty())
    return;
  forget_mapping(bytes_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

} // namespace troupe::models
