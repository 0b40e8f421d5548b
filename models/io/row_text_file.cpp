#include "models/io/row_text_file.hpp"

#include "config/base/error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe::models {

RowTextFile::RowTextFile(const std::filesystem::path& path)
  : path_(path.string()),
    file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (file_.get() < 0)
    throw ConfigError({.place = {path_, 0},
                       .path = "",
                       .expected = "a readable file",
                       .got = std::strerror(errno),
                       .hint = "another name, or reading rights"});
}

std::string RowTextFile::read(std::uint64_t begin,
                              std::size_t size_bytes) const {
  std::string text(size_bytes, '\0');
  std::size_t done = 0;
  while (done < size_bytes) {
    const auto got = ::pread(file_.get(), text.data() + done, size_bytes - done,
                             static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw FailureError(
        {.code = Errc::io,
         .who = path_,
         .what = std::string("cannot read: ") + std::strerror(errno),
         .cause = ""});
    if (got == 0)
      break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

} // namespace troupe::models
