#include "runtime/jsonl_file.hpp"

#include "config/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

namespace troupe::runtime {

namespace {

[[noreturn]] void jsonl_fail(const std::filesystem::path& path,
                             const char* verb, int error) {
  throw FailureError({.code = Errc::io,
                      .who = "master",
                      .what = fmt::format("cannot {} {}: {}", verb,
                                          path.string(), std::strerror(error)),
                      .cause = ""});
}

void write_all(int fd, std::string_view text,
               const std::filesystem::path& path) {
  while (!text.empty()) {
    const auto written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      jsonl_fail(path, "write", errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// The number `step` of a line, or nothing if the line is not whole JSON.
std::optional<std::uint64_t> step_of_line(const std::string& line) {
  const auto document = nlohmann::json::parse(line, nullptr, false);
  if (!document.is_object() || !document.contains("step")
      || !document["step"].is_number())
    return std::nullopt;
  return document["step"].get<std::uint64_t>();
}

} // namespace

void replace_file(const std::filesystem::path& path, std::string_view text) {
  auto beside = path;
  beside += fmt::format(".tmp{}", ::getpid());
  const int fd
    = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0)
    jsonl_fail(path, "create", errno);
  try {
    write_all(fd, text, path);
  } catch (...) {
    ::close(fd);
    ::unlink(beside.c_str());
    throw;
  }
  // some file systems report a full disk only here
  if (::close(fd) != 0 || ::rename(beside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(beside.c_str());
    jsonl_fail(path, "write", error);
  }
}

std::string read_file(const std::filesystem::path& path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, ignored))
    throw ConfigError({.place = {path.string(), 0},
                       .path = "",
                       .expected = "a readable file",
                       .got = "none",
                       .hint = "another name, or reading rights"});
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

JsonlFile::JsonlFile(const std::filesystem::path& path)
  : path_(path),
    fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (fd_ < 0)
    jsonl_fail(path_, "create", errno);
}

JsonlFile::~JsonlFile() {
  if (fd_ >= 0)
    ::close(fd_);
}

JsonlFile::JsonlFile(JsonlFile&& other) noexcept
  : path_(std::move(other.path_)),
    fd_(std::exchange(other.fd_, -1)) {}

void JsonlFile::append(std::string_view line) {
  std::string text{line};
  text += '\n';
  write_all(fd_, text, path_);
}

std::uint64_t cut_back(const std::filesystem::path& path,
                       std::uint64_t last_step) {
  if (!std::filesystem::exists(path))
    return 0;
  const std::string text = read_file(path);
  std::string kept;
  std::uint64_t num_dropped = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    const bool whole = end != std::string::npos;
    const std::string line
      = text.substr(begin, whole ? end - begin : std::string::npos);
    const auto step = step_of_line(line);
    if (whole && step && *step <= last_step)
      kept += line + '\n';
    else
      ++num_dropped;
    if (!whole)
      break;
    begin = end + 1;
  }
  if (num_dropped > 0)
    replace_file(path, kept);
  return num_dropped;
}

} // namespace troupe::runtime
