#include "config/log.hpp"

#include "config/error.hpp"

#include <spdlog/details/log_msg_buffer.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe::log {

namespace {

constexpr const char* log_file_pattern = "%Y-%m-%d %H:%M:%S.%e %l %n: %v";
constexpr const char* log_stderr_pattern = "%l: %n: %v";

/// A process that never opens a file keeps no more lines for one.
constexpr std::size_t early_lines_limit = 200;

using Lines = std::vector<spdlog::details::log_msg_buffer>;

/// The sinks that every component's logger shares.
struct LogSinks {
  std::mutex mutex;
  std::shared_ptr<spdlog::sinks::sink> console;
  std::shared_ptr<spdlog::sinks::sink> file; ///< null until open()
  Lines early;          ///< lines for the file, before there is one
  Lines held;           ///< lines for the console, while they wait
  bool is_held = false; ///< a HeldConsole lives
};

LogSinks& log_sinks() {
  // Never destroyed: threads may log while the process ends.
  static auto* sinks = [] {
    auto* made = new LogSinks;
    made->console = std::make_shared<spdlog::sinks::stderr_sink_mt>();
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

void write_to(const std::shared_ptr<spdlog::sinks::sink>& sink,
              const spdlog::details::log_msg& message) {
  if (!sink || !sink->should_log(message.level))
    return;
  sink->log(message);
  sink->flush(); // somebody follows the file, or a crash may come
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

void open(const std::filesystem::path& file, Level level) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  try {
    // makes the folder too
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
  if (log_sinks().file)
    log_sinks().file->flush();
  log_sinks().console->flush();
}

} // namespace troupe::log
