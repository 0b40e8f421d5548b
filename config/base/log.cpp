#include "config/base/log.hpp"

#include "config/base/console_output.hpp"
#include "config/base/error.hpp"

#include <spdlog/details/log_msg_buffer.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe::log {

namespace {

constexpr const char* log_file_pattern = "%Y-%m-%d %H:%M:%S.%e %l %n: %v";
constexpr const char* log_stderr_pattern = "%l: %n: %v";

/// Limit of lines kept for the file in a process that never opens one.
constexpr std::size_t early_lines_limit = 200;

using Lines = std::vector<spdlog::details::log_msg_buffer>;

/// Writes to stderr, without waiting for its reader.
class ConsoleSink final : public spdlog::sinks::base_sink<std::mutex> {
public:
  void wait_for_reader() {
    output_.wait(std::chrono::seconds(1));
  }

protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    output_.write({line.data(), line.size()});
  }
  void flush_() override {}

private:
  ConsoleOutput output_{STDERR_FILENO};
};

/// Sinks that the loggers of all components share.
struct LogSinks {
  std::mutex mutex;
  std::shared_ptr<ConsoleSink> console;
  std::shared_ptr<spdlog::sinks::sink> file; ///< null before open()
  Lines early;          ///< lines for the file, before it is open
  Lines held;           ///< lines for the console, while delayed
  bool is_held = false; ///< a HeldConsole exists
};

LogSinks& log_sinks() {
  // never destroyed: threads may log while the process ends
  static auto* sinks = [] {
    auto* made = new LogSinks;
    made->console = std::make_shared<ConsoleSink>();
    made->console->set_level(spdlog::level::warn);
    made->console->set_pattern(log_stderr_pattern);
    return made;
  }();
  return *sinks;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
  case Level::debug:
    return spdlog::level::debug;
  case Level::info:
    return spdlog::level::info;
  case Level::warn:
    return spdlog::level::warn;
  case Level::error:
    return spdlog::level::err;
  case Level::off:
    return spdlog::level::off;
  }
  return spdlog::level::off;
}

/// Says once per process that lines of the log are lost. Whoever logs has
/// something else to do, and may be ending because of the same full disk.
void tell_once(const char* why) noexcept {
  static std::atomic<bool> told{false};
  if (!told.exchange(true))
    std::fprintf(stderr, "warning: log: lines are lost: %s\n", why);
}

void write_to(const std::shared_ptr<spdlog::sinks::sink>& sink,
              const spdlog::details::log_msg& message) {
  if (!sink || !sink->should_log(message.level))
    return;
  try {
    sink->log(message);
    sink->flush(); // the file may be followed, or a crash may come
  } catch (const std::exception& error) { // a full disk
    tell_once(error.what());
  }
}

void write_to_file(const spdlog::details::log_msg& message) {
  std::shared_ptr<spdlog::sinks::sink> file;
  {
    std::lock_guard lock(log_sinks().mutex);
    file = log_sinks().file;
    if (!file && log_sinks().early.size() < early_lines_limit)
      log_sinks().early.emplace_back(message);
  }
  write_to(file, message);
}

void write_to_console(const spdlog::details::log_msg& message) {
  std::shared_ptr<spdlog::sinks::sink> console;
  {
    std::lock_guard lock(log_sinks().mutex);
    console = log_sinks().console;
    if (log_sinks().is_held && console->should_log(message.level)) {
      log_sinks().held.emplace_back(message);
      return;
    }
  }
  write_to(console, message);
}

void write_line(const char* component, spdlog::level::level_enum level,
                std::string_view text) {
  const spdlog::details::log_msg message(component, level, text);
  write_to_file(message);
  write_to_console(message);
}

} // namespace

void Component::debug(std::string_view text) const {
  write_line(name_, spdlog::level::debug, text);
}

void Component::info(std::string_view text) const {
  write_line(name_, spdlog::level::info, text);
}

void Component::warn(std::string_view text) const {
  write_line(name_, spdlog::level::warn, text);
}

void Component::error(std::string_view text) const {
  write_line(name_, spdlog::level::err, text);
}

void Component::warn_file(std::string_view text) const {
  write_to_file({name_, spdlog::level::warn, text});
}

std::optional<std::uint64_t> WarningLimit::allow(Time now) {
  constexpr std::uint64_t most = 10;
  constexpr std::chrono::minutes period{1};
  const std::lock_guard lock(mutex_);
  if (given_ == 0 || now - minute_ >= period) {
    minute_ = now;
    given_ = 0;
  }
  if (given_ == most) {
    ++left_out_;
    return std::nullopt;
  }
  ++given_;
  return std::exchange(left_out_, 0);
}

void warn_of_stranger(const Component& component, std::string_view text) {
  static WarningLimit limit;
  const auto left_out = limit.allow(std::chrono::steady_clock::now());
  if (!left_out)
    return;
  component.warn(
    *left_out == 0
      ? std::string(text)
      : fmt::format("{} ({} warnings like it were left out)", text, *left_out));
}

void renew_log(const std::filesystem::path& file) {
  std::error_code error; // a log that cannot be renamed just grows
  const auto bytes = std::filesystem::file_size(file, error);
  if (!error && bytes > max_log_bytes)
    std::filesystem::rename(file, file.string() + ".1", error);
}

void open(const std::filesystem::path& file, Level level) {
  renew_log(file);
  std::shared_ptr<spdlog::sinks::sink> sink;
  try {
    // also creates the folder
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
  } catch (const spdlog::spdlog_ex& error) {
    throw FailureError({.code = Errc::io,
                        .who = "log",
                        .what = "cannot write " + file.string(),
                        .cause = error.what()});
  }
  sink->set_level(to_spdlog(level));
  sink->set_pattern(log_file_pattern);
  Lines early;
  {
    std::lock_guard lock(log_sinks().mutex);
    log_sinks().file = sink;
    early = std::exchange(log_sinks().early, {});
  }
  for (const auto& line : early)
    write_to(sink, line);
}

HeldConsole::HeldConsole() {
  std::lock_guard lock(log_sinks().mutex);
  log_sinks().is_held = true;
}

HeldConsole::~HeldConsole() {
  Lines held;
  {
    std::lock_guard lock(log_sinks().mutex);
    log_sinks().is_held = false;
    held = std::exchange(log_sinks().held, {});
  }
  for (const auto& line : held)
    write_to(log_sinks().console, line);
}

void stamp_console() {
  log_sinks().console->set_pattern(log_file_pattern);
}

void flush() {
  std::lock_guard lock(log_sinks().mutex);
  try {
    if (log_sinks().file)
      log_sinks().file->flush();
    log_sinks().console->wait_for_reader();
  } catch (const std::exception& error) {
    tell_once(error.what());
  }
}

} // namespace troupe::log
