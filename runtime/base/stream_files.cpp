#include "runtime/base/stream_files.hpp"

#include "config/base/error.hpp"
#include "runtime/base/jsonl_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void stream_fail(const fs::path& path, int error) {
  throw FailureError{{.code = Errc::io,
                      .who = "",
                      .what = fmt::format("cannot write {}: {}", path.string(),
                                          std::strerror(error)),
                      .cause = ""}};
}

/// Calls `write(stream)`, which opens, writes and flushes; a pipe whose reader
/// has left is not an error.
template <class Write>
void write_stream(const fs::path& path, const Write& write) {
  errno = 0;
  std::ofstream stream(path, std::ios::binary | std::ios::app);
  if (stream)
    write(stream);
  stream.flush();
  if (!stream && errno != EPIPE)
    stream_fail(path, errno != 0 ? errno : EIO);
}

/// Copies all of `from`, which may be empty.
void copy_bytes(std::ifstream& from, std::ofstream& to) {
  if (from.peek() != std::ifstream::traits_type::eof())
    to << from.rdbuf();
}

bool is_below(const fs::path& path, std::string_view folder) {
  return fs::absolute(path).lexically_normal().string().starts_with(folder);
}

} // namespace

RowInput::RowInput(std::string name, const std::string& option)
  : name_(std::move(name)),
    file_(name_) {
  std::error_code ignored;
  if (fs::is_regular_file(name_, ignored))
    return;
  std::ifstream from;
  if (!fs::is_directory(name_, ignored) && !fs::is_block_file(name_, ignored))
    from.open(name_, std::ios::binary);
  if (!from.is_open())
    throw ConfigError({.place = {"command line", 0},
                       .path = option,
                       .expected = "a file or pipe of JSON lines",
                       .got = "'" + name_ + "', which is none",
                       .hint = ""});
  copy_.reset(new TemporaryFolder(scratch_folder("troupe-rows-")));
  file_ = (copy_->path() / "rows.jsonl").string();
  write_stream(file_, [&](std::ofstream& to) { copy_bytes(from, to); });
}

void RowInput::rethrow(const ConfigError& error) const {
  std::string line = error.what();
  for (auto at = line.find(file_); copy_ && at != std::string::npos;
       at = line.find(file_, at + name_.size()))
    line.replace(at, file_.size(), name_);
  throw ConfigError(Place{}, line);
}

bool is_stream(const fs::path& path) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  if (fs::is_fifo(status) || fs::is_character_file(status))
    return true;
  return fs::is_regular_file(status)
         && (is_below(path, "/dev/") || is_below(path, "/proc/"));
}

void write_result(const fs::path& path, std::string_view text) {
  if (is_stream(path))
    write_stream(path, [&](std::ofstream& to) { to << text; });
  else
    replace_file(path, text);
}

void move_result(const fs::path& from, const fs::path& to) {
  if (is_stream(to)) {
    std::ifstream rows(from, std::ios::binary);
    write_stream(to, [&](std::ofstream& stream) { copy_bytes(rows, stream); });
    return;
  }
  std::error_code error;
  if (fs::is_directory(to, error))
    fs::remove(to, error); // an empty folder
  fs::rename(from, to, error);
  if (error)
    stream_fail(to, error.value());
}

} // namespace troupe::runtime
