#include "actors/worker_base/snapshot_memory.hpp"

#include "actors/protocol/export_numbers.hpp"
#include "actors/protocol/pull_bytes.hpp"
#include "models/engine/plane_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace troupe::actors {

namespace {

[[noreturn]] void fail_memory(const char* doing, int error) {
  throw FailureError({.code = Errc::io,
                      .who = "snapshot",
                      .what = fmt::format("cannot {} its memory: {}", doing,
                                          std::strerror(error)),
                      .cause = ""});
}

/// Returns the keeper's name of a file.
std::string name_of(const SnapshotFile& file) {
  return fmt::format(
    "{}replica {} device {} slot {}", file.place.is_copy ? "copy of " : "",
    file.place.replica.value, file.place.device.value, file.slot);
}

/// Returns the number under which a file is exported.
std::uint64_t number_of(const SnapshotFile& file) {
  return snapshot_export
         | std::uint64_t{file.place.is_copy} << snapshot_copy_bit
         | std::uint64_t{file.slot} << snapshot_slot_bit
         | std::uint64_t{file.place.replica.value} << 32
         | file.place.device.value;
}

/// A memory file in this process's memory.
class Mapping {
public:
  Mapping(int file, std::size_t size_bytes, int protection)
    : data_(::mmap(nullptr, size_bytes, protection, MAP_SHARED, file, 0)),
      size_bytes_(size_bytes) {
    if (data_ == MAP_FAILED)
      fail_memory("map", errno);
  }
  ~Mapping() {
    ::munmap(data_, size_bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(data_), size_bytes_};
  }

private:
  void* data_;
  std::size_t size_bytes_;
};

std::size_t size_of(const net::Descriptor& file) {
  struct stat found {};
  if (::fstat(file.get(), &found) != 0)
    fail_memory("measure", errno);
  return static_cast<std::size_t>(found.st_size);
}

using Head = std::array<std::byte, models::plane_file_start>;

void write_head(const net::Descriptor& file, const Head& head) {
  if (::pwrite(file.get(), head.data(), head.size(), 0)
      != static_cast<ssize_t>(head.size()))
    fail_memory("write", errno);
}

/// Reads a part of a file that another worker lends; returns false if it does
/// not.
bool pull_part(net::DataPlane& plane, const SnapshotFile& file,
               std::uint64_t offset, std::span<std::byte> into) {
  try {
    pull_bytes(plane, file.place.worker, number_of(file), offset, into);
    return true;
  } catch (const FailureError& error) {
    if (error.failure().code != Errc::bug) // that it replied that it has none
      throw;
    return false;
  }
}

} // namespace

SnapshotMemory::SnapshotMemory(const std::string& keeper)
  : keeper_(keeper, {"/proc/self/exe", "keeper", keeper}) {}

void SnapshotMemory::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true; // a copy that is under way must start no other keeper
  keeper_.end();
}

net::Descriptor SnapshotMemory::open_locked(const SnapshotFile& file) {
  if (ended_)
    throw FailureError({.code = Errc::aborted,
                        .who = "snapshot",
                        .what = "the run has ended",
                        .cause = ""});
  return keeper_.open(name_of(file));
}

net::Descriptor SnapshotMemory::open(const SnapshotFile& file) {
  const std::lock_guard lock(mutex_);
  return open_locked(file);
}

net::Descriptor SnapshotMemory::open_to_write(net::DataPlane& plane,
                                              const SnapshotFile& file) {
  const std::lock_guard lock(mutex_);
  if (lent_.erase(number_of(file)) > 0)
    plane.withdraw(number_of(file));
  return open_locked(file);
}

void SnapshotMemory::lend(net::DataPlane& plane, const SnapshotFile& file) {
  const auto opened = open(file);
  const auto size_bytes = size_of(opened);
  if (size_bytes == 0)
    return;
  auto mapped = std::make_shared<Mapping>(opened.get(), size_bytes, PROT_READ);
  const auto* data = mapped->bytes().data();
  const std::lock_guard lock(mutex_);
  if (lent_.insert(number_of(file)).second)
    plane.export_memory(number_of(file), data, size_bytes, std::move(mapped));
}

bool SnapshotMemory::has(const SnapshotFile& file, std::uint64_t id) {
  const auto opened = open(file);
  Head head{};
  return ::pread(opened.get(), head.data(), head.size(), 0)
           == static_cast<ssize_t>(head.size())
         && models::plane_file_bytes(head, id).has_value();
}

std::uint64_t pull_snapshot(net::DataPlane& plane, const SnapshotFile& file,
                            std::uint64_t id, const net::Descriptor& into) {
  Head head{};
  if (!pull_part(plane, file, 0, head))
    return 0;
  const auto size_bytes = models::plane_file_bytes(head, id);
  if (!size_bytes)
    return 0;
  write_head(into, {}); // no snapshot until all of it is there
  if (const int error
      = ::posix_fallocate(into.get(), 0, static_cast<off_t>(*size_bytes)))
    fail_memory("allocate", error);
  const Mapping mapped(into.get(), *size_bytes, PROT_READ | PROT_WRITE);
  if (!pull_part(plane, file, head.size(), mapped.bytes().subspan(head.size())))
    return 0;
  write_head(into, head);
  return *size_bytes;
}

net::Descriptor unkept_file() {
  net::Descriptor file(::memfd_create("troupe-snapshot", MFD_CLOEXEC));
  if (file.get() < 0)
    fail_memory("create", errno);
  return file;
}

} // namespace troupe::actors
