#include "runtime/base/jsonl_file.hpp"

#include "config/base/error.hpp"
#include "net/base/descriptor.hpp"
#include "plans/check/plan_check.hpp"
#include "runtime/base/lines_backward.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

namespace troupe::runtime {

namespace {

[[noreturn]] void jsonl_fail(const std::filesystem::path& path,
                             const char* command, int error) {
  throw FailureError({.code = Errc::io,
                      .who = "master",
                      .what = fmt::format("cannot {} {}: {}", command,
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

/// Returns the number `step` of a line, or nothing if it has none. Troupe's own
/// lines begin with it, so that long ones need not be read to their end.
std::optional<std::uint64_t> step_of_line(std::string_view line) {
  constexpr std::string_view start = "{\"step\":";
  std::uint64_t step = 0;
  if (line.starts_with(start)) {
    const char* last = line.data() + line.size();
    const auto [end, error]
      = std::from_chars(line.data() + start.size(), last, step);
    if (error == std::errc{} && end != last && (*end == ',' || *end == '}'))
      return step;
  }
  const auto document = nlohmann::json::parse(line, nullptr, false);
  if (!document.is_object() || !document.contains("step")
      || !document["step"].is_number())
    return std::nullopt;
  return document["step"].get<std::uint64_t>();
}

/// Steps in flight at the same time, so that lines of one may come after lines
/// of a later one.
constexpr std::uint64_t steps_at_once = plans::max_plan_lag + 1;

/// A range of bytes in a file.
struct FilePart {
  std::uint64_t begin = 0;
  std::size_t size = 0;
};

/// The result of cutting a file back.
struct Cut {
  std::uint64_t num_dropped = 0;
  std::uint64_t end = 0;       ///< end of the part that is kept in place
  std::vector<FilePart> later; ///< lines to keep of the part that is cut off,
                               ///< in order
};

Cut find_cut(const std::filesystem::path& path, std::uint64_t last_step) {
  LinesBackward lines(path);
  Cut cut;
  std::vector<FilePart> kept; // before the last dropped line
  while (const auto line = lines.next()) {
    const auto step = step_of_line(line->text);
    if (!line->whole || !step || *step > last_step) {
      ++cut.num_dropped;
      cut.end = line->begin;
      std::ranges::move(kept, std::back_inserter(cut.later));
      kept.clear();
    } else if (*step + steps_at_once <= last_step) {
      break;
    } else {
      kept.push_back({line->begin, line->text.size() + 1});
    }
  }
  std::ranges::reverse(cut.later);
  return cut;
}

std::string read_parts(const std::filesystem::path& path,
                       const std::vector<FilePart>& parts) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  for (const auto& part : parts) {
    std::string bytes(part.size, '\0');
    file.seekg(static_cast<std::streamoff>(part.begin));
    if (!file.read(bytes.data(), static_cast<std::streamsize>(part.size)))
      jsonl_fail(path, "read", errno);
    text += bytes;
  }
  return text;
}

} // namespace

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
  const auto cut = find_cut(path, last_step);
  if (cut.num_dropped == 0)
    return 0;
  const auto later = read_parts(path, cut.later);
  const net::Descriptor file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (file.get() < 0
      || ::lseek(file.get(), static_cast<off_t>(cut.end), SEEK_SET) < 0)
    jsonl_fail(path, "cut", errno);
  // written before the rest is removed: a kill in between must not lose these
  // lines
  write_all(file.get(), later, path);
  if (::ftruncate(file.get(), static_cast<off_t>(cut.end + later.size())) != 0)
    jsonl_fail(path, "cut", errno);
  return cut.num_dropped;
}

void replace_by_copy(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path))
    return;
  const std::filesystem::path copy{path.string() + ".copy"};
  std::error_code error;
  std::filesystem::copy_file(
    path, copy, std::filesystem::copy_options::overwrite_existing, error);
  if (!error)
    std::filesystem::rename(copy, path, error);
  if (error)
    jsonl_fail(path, "copy", error.value());
}

} // namespace troupe::runtime
