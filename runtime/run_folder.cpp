#include "runtime/run_folder.hpp"

#include "config/checkpoint_name.hpp"
#include "config/error.hpp"
#include "models/data_index.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

/// The number that `name` is, digit for digit.
std::optional<std::uint32_t> number_of(std::string_view name) {
  std::uint32_t number = 0;
  const char* last = name.data() + name.size();
  auto [end, error] = std::from_chars(name.data(), last, number);
  if (error != std::errc{} || end != last)
    return std::nullopt;
  return number;
}

ConfigError folder_error(const fs::path& folder, const std::string& reason) {
  return ConfigError({.place = {folder.string(), 0},
                      .path = "",
                      .expected = "a run folder that can be written",
                      .got = reason,
                      .hint = "another run.dir"});
}

int open_lock(const RunFolder& folder, int flags) {
  return ::open(folder.lock_file().c_str(), flags | O_CLOEXEC, 0666);
}

} // namespace

std::string RunFolder::name() const {
  const auto absolute = fs::absolute(root_).lexically_normal();
  const auto last = absolute.filename();
  return last.empty() ? absolute.parent_path().filename().string()
                      : last.string();
}

fs::path RunFolder::config_file() const {
  return root_ / "config.yaml";
}
fs::path RunFolder::plan_file() const {
  return root_ / "plan.yaml";
}
fs::path RunFolder::dataflow_file() const {
  return root_ / "dataflow.json";
}
fs::path RunFolder::inputs_file() const {
  return root_ / "inputs.json";
}
fs::path RunFolder::index_file() const {
  return root_ / models::data_index_file;
}

fs::path RunFolder::metrics_file() const {
  return root_ / "metrics.jsonl";
}
fs::path RunFolder::samples_file() const {
  return root_ / "samples.jsonl";
}
fs::path RunFolder::status_file() const {
  return root_ / "status.json";
}
fs::path RunFolder::failures_file() const {
  return root_ / "failures.jsonl";
}
fs::path RunFolder::log_file() const {
  return root_ / "log.txt";
}
fs::path RunFolder::stop_file() const {
  return root_ / "stop";
}
fs::path RunFolder::lock_file() const {
  return root_ / ".lock";
}
fs::path RunFolder::worker_log(WorkerId worker) const {
  return root_ / "logs" / fmt::format("worker_{:02}.log", worker.value);
}
fs::path RunFolder::attempt_folder(std::uint32_t attempt) const {
  return root_ / "attempts" / fmt::format("{:02}", attempt);
}
fs::path RunFolder::tensorboard_folder() const {
  return root_ / "tensorboard";
}
fs::path RunFolder::trace_folder() const {
  return root_ / "trace";
}
fs::path RunFolder::trace_json() const {
  return root_ / "trace.json";
}
fs::path RunFolder::checkpoints_folder() const {
  return root_ / "checkpoints";
}
fs::path RunFolder::checkpoint(std::uint32_t step) const {
  return checkpoints_folder() / checkpoint_name(StepId{step});
}
fs::path RunFolder::eval_file(std::uint32_t step) const {
  return root_ / "eval" / fmt::format("step_{:06}.jsonl", step);
}

bool RunFolder::exists() const {
  std::error_code ignored;
  return fs::exists(config_file(), ignored);
}

void RunFolder::create() const {
  std::error_code error;
  for (const auto& folder :
       {root_ / "logs", trace_folder(), checkpoints_folder()}) {
    fs::create_directories(folder, error);
    if (error)
      throw folder_error(root_, error.message());
  }
  check_writable();
}

void RunFolder::check_writable() const {
  auto nearest = fs::absolute(root_).lexically_normal();
  std::error_code ignored;
  while (!fs::exists(nearest, ignored) && nearest.has_relative_path())
    nearest = nearest.parent_path();
  if (!fs::is_directory(nearest, ignored))
    throw folder_error(root_, nearest.string() + " is not a folder");
  if (::access(nearest.c_str(), W_OK | X_OK) != 0)
    throw folder_error(
      root_, fmt::format("{}: {}", nearest.string(), std::strerror(errno)));
}

std::vector<std::uint32_t> RunFolder::checkpoints() const {
  std::vector<std::uint32_t> steps;
  std::error_code ignored;
  for (const auto& entry :
       fs::directory_iterator(checkpoints_folder(), ignored)) {
    const auto step = step_of_checkpoint(entry.path().filename().string());
    if (step && fs::exists(entry.path() / "manifest.json", ignored))
      steps.push_back(step->value);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::uint32_t RunFolder::next_attempt() const {
  std::uint32_t highest = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root_ / "attempts", ignored))
    highest = std::max(highest,
                       number_of(entry.path().filename().string()).value_or(0));
  return highest + 1;
}

fs::path RunFolder::rename_old() const {
  const auto absolute = fs::absolute(root_).lexically_normal();
  const auto parent = root_.has_filename() ? root_.parent_path()
                                           : root_.parent_path().parent_path();
  for (std::uint32_t number = 1;; ++number) {
    const auto target = parent / fmt::format("{}.{}", name(), number);
    std::error_code error;
    if (fs::exists(fs::symlink_status(target, error)))
      continue;
    fs::rename(absolute, target, error);
    if (error)
      throw folder_error(root_, "renaming it to " + target.string() + ": "
                                  + error.message());
    return target;
  }
}

RunLock::RunLock(const RunFolder& folder)
  : fd_(open_lock(folder, O_RDWR | O_CREAT)) {
  if (fd_ < 0)
    throw folder_error(folder.root(), std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0)
    return;
  ::close(fd_);
  throw ConfigError({.place = {folder.root().string(), 0},
                     .path = "",
                     .expected = "a run that nobody else makes",
                     .got = "one that is active in another process",
                     .hint = fmt::format("`troupe stop {}` or another run.name",
                                         folder.root().string())});
}

RunLock::~RunLock() {
  ::close(fd_);
}

bool is_active(const RunFolder& folder) {
  const int fd = open_lock(folder, O_RDONLY);
  if (fd < 0)
    return false;
  const bool active = ::flock(fd, LOCK_SH | LOCK_NB) != 0;
  ::close(fd);
  return active;
}

void wait_until_idle(const RunFolder& folder) {
  const int fd = open_lock(folder, O_RDONLY);
  if (fd < 0)
    return;
  while (::flock(fd, LOCK_SH) != 0 && errno == EINTR) {
  }
  ::close(fd);
}

} // namespace troupe::runtime
