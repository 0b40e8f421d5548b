#include "config/base/atomic_file.hpp"

#include "config/base/error.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe {

namespace {

int create_anew(const std::string& path, mode_t mode) {
  ::unlink(path.c_str()); // left by a killed process that had our number
  return ::open(path.c_str(),
                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

thread_local WrittenFiles* collects = nullptr;

} // namespace

WrittenFiles::WrittenFiles() : before_(std::exchange(collects, this)) {}

WrittenFiles::~WrittenFiles() {
  collects = before_;
}

AtomicFile::AtomicFile(std::filesystem::path path, std::string who,
                       Readers readers)
  : path_(std::move(path)),
    temporary_(path_.string() + ".tmp" + std::to_string(::getpid())),
    who_(std::move(who)),
    fd_(create_anew(temporary_, readers == Readers::owner ? 0600 : 0666)) {
  if (fd_ < 0)
    fail("create");
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0)
    return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* doing) const {
  const std::string reason = std::strerror(errno);
  throw FailureError({.code = Errc::io,
                      .who = who_,
                      .what = std::string("cannot ") + doing + " "
                              + path_.string() + ": " + reason,
                      .cause = ""});
}

void AtomicFile::fail_closed(const char* doing) const {
  const int reason = errno;
  ::unlink(temporary_.c_str());
  errno = reason;
  fail(doing);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  if (collects != nullptr)
    crc32_ = static_cast<std::uint32_t>(::crc32_z(
      crc32_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void AtomicFile::commit(Sync sync) {
  if (sync == Sync::yes && ::fsync(fd_) != 0)
    fail("sync");
  // some file systems report a full disk only here
  if (::close(std::exchange(fd_, -1)) != 0)
    fail_closed("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail_closed("write");
  if (collects != nullptr)
    collects->files_.push_back({path_, bytes_, crc32_});
  if (sync == Sync::no)
    return;
  const auto folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const int folder_fd = ::open(folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (folder_fd < 0)
    fail("sync the folder of");
  const int synced = ::fsync(folder_fd);
  ::close(folder_fd);
  if (synced != 0)
    fail("sync the folder of");
}

void replace_file(const std::filesystem::path& path, std::string_view text,
                  Sync sync) {
  AtomicFile file(path);
  file.write(text);
  file.commit(sync);
}

void replace_private_file(const std::filesystem::path& path,
                          std::string_view text) {
  AtomicFile file(path, "", Readers::owner);
  file.write(text);
  file.commit();
}

} // namespace troupe
