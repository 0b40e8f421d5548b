#include "runtime/base/lines_backward.hpp"

#include "config/base/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace troupe::runtime {

namespace {

constexpr std::size_t first_read_bytes = std::size_t{1} << 16;

[[noreturn]] void cannot_read(const std::filesystem::path& path, int error) {
  throw FailureError({.code = Errc::io,
                      .who = "master",
                      .what = fmt::format("cannot read {}: {}", path.string(),
                                          std::strerror(error)),
                      .cause = ""});
}

} // namespace

LinesBackward::LinesBackward(const std::filesystem::path& path)
  : path_(path),
    file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status {};
  if (file_.get() < 0 || ::fstat(file_.get(), &status) != 0)
    cannot_read(path_, errno);
  begin_ = static_cast<std::uint64_t>(status.st_size);
}

/// Doubles the buffer, so that a long line is moved few times.
void LinesBackward::read_more() {
  const auto size
    = std::min<std::uint64_t>(begin_, std::max(first_read_bytes, read_.size()));
  std::string before(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const auto got = ::pread(file_.get(), before.data() + done, size - done,
                             static_cast<off_t>(begin_ - size + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0) // 0: the file was cut meanwhile
      cannot_read(path_, got < 0 ? errno : EIO);
    done += static_cast<std::size_t>(got);
  }
  begin_ -= size;
  read_.insert(0, before);
  left_ = read_.size();
}

std::optional<LinesBackward::Line> LinesBackward::next() {
  read_.resize(left_);
  if (left_ == 0 && begin_ == 0)
    return std::nullopt;
  if (left_ == 0)
    read_more();
  const bool whole = read_.back() == '\n';
  // the end of the preceding line
  const auto find_end = [&] {
    return std::string_view(read_).substr(0, read_.size() - whole).rfind('\n');
  };
  auto end = find_end();
  for (; end == std::string::npos && begin_ > 0; end = find_end())
    read_more();
  left_ = end == std::string::npos ? 0 : end + 1;
  return Line{
    .begin = begin_ + left_,
    .text = std::string_view(read_).substr(left_, read_.size() - left_ - whole),
    .whole = whole};
}

} // namespace troupe::runtime
