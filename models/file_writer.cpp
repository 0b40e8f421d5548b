#include "models/internal/file_writer.hpp"

#include "config/error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace troupe::models::internal {

FileWriter::FileWriter(std::filesystem::path path) : path_(std::move(path)) {
  temporary_ = path_;
  temporary_.replace_filename(".tmp-" + path_.filename().string());
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
               0644);
  if (fd_ < 0)
    fail("create");
}

FileWriter::~FileWriter() {
  if (fd_ < 0)
    return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void FileWriter::fail(const char* doing) const {
  const std::string reason = std::strerror(errno);
  throw FailureError(Failure{
    Errc::io, "",
    std::string("cannot ") + doing + " " + path_.string() + ": " + reason, ""});
}

void FileWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void FileWriter::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void FileWriter::commit(bool sync) {
  if (sync && ::fsync(fd_) != 0)
    fail("sync");
  // Some file systems report a full disk only here.
  if (::close(std::exchange(fd_, -1)) != 0) {
    const int reason = errno;
    ::unlink(temporary_.c_str());
    errno = reason;
    fail("close");
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary_.c_str());
    errno = reason;
    fail("rename");
  }
  if (!sync)
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

void write_file(const std::filesystem::path& path, std::string_view text,
                bool sync) {
  FileWriter file(path);
  file.write(text);
  file.commit(sync);
}

} // namespace troupe::models::internal
