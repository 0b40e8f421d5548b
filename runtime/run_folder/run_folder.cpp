#include "runtime/run_folder/run_folder.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "config/base/checkpoint_name.hpp"
#include "config/base/error.hpp"
#include "models/data/data_index.hpp"
#include "net/base/descriptor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

/// Returns the number that `name` is, digit for digit.
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

/// Returns a request for a lock of an open file (OFD), which the kernel frees
/// with its last descriptor. Asking who holds one takes none, so a reader never
/// keeps a master from starting.
struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
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
fs::path RunFolder::secret_file() const {
  return root_ / ".token";
}
fs::path RunFolder::page_token_file() const {
  return root_ / ".page_token";
}
fs::path RunFolder::agents_token_file() const {
  return root_ / ".agents_token";
}
fs::path RunFolder::worker_log(WorkerId worker) const {
  return root_ / "logs" / fmt::format("worker_{:02}.log", worker.value);
}
std::optional<WorkerId> RunFolder::worker_of_log(const fs::path& file) {
  constexpr std::string_view prefix = "worker_";
  const auto name = file.stem().string();
  if (!name.starts_with(prefix) || file.extension() != ".log")
    return std::nullopt;
  const auto number = number_of(std::string_view(name).substr(prefix.size()));
  return number ? std::optional(WorkerId{*number}) : std::nullopt;
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

std::optional<std::uint32_t> RunFolder::newest_checkpoint() const {
  const auto steps = checkpoints();
  return steps.empty() ? std::nullopt : std::optional(steps.back());
}

void RunFolder::set_aside_after(std::uint32_t step) const {
  for (const auto later : checkpoints()) {
    if (later <= step)
      continue;
    const auto damaged = checkpoint(later);
    const fs::path aside = damaged.string() + ".damaged";
    std::error_code error;
    fs::remove_all(aside, error);
    fs::rename(damaged, aside, error);
    if (error)
      throw FailureError(
        {.code = Errc::io,
         .who = "checkpoint",
         .what = fmt::format("cannot rename {}: {}", damaged.string(),
                             error.message()),
         .cause = ""});
    actors::point_link(root_, actors::latest_link, checkpoint(step).filename());
  }
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
  auto lock = whole_file(F_WRLCK);
  if (::fcntl(fd_, F_OFD_SETLK, &lock) == 0)
    return;
  const int error = errno;
  ::close(fd_);
  if (error != EAGAIN && error != EACCES) // a file system without locks
    throw folder_error(folder.root(),
                       fmt::format("no lock: {}", std::strerror(error)));
  throw ConfigError({.place = {folder.root().string(), 0},
                     .path = "",
                     .expected = "a run folder that no other master uses",
                     .got = "one that is active in another process",
                     .hint = fmt::format("`troupe stop {}` or another run.name",
                                         folder.root().string())});
}

RunLock::~RunLock() {
  ::close(fd_);
}

bool is_active(const RunFolder& folder) {
  const net::Descriptor file{open_lock(folder, O_RDONLY)};
  auto lock = whole_file(F_RDLCK);
  return file.get() >= 0 && ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0
         && lock.l_type != F_UNLCK;
}

void wait_until_idle(const RunFolder& folder) {
  const net::Descriptor file{open_lock(folder, O_RDONLY)};
  auto lock = whole_file(F_RDLCK);
  while (file.get() >= 0 && ::fcntl(file.get(), F_OFD_SETLKW, &lock) != 0
         && errno == EINTR) {
  }
}

} // namespace troupe::runtime
