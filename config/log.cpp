#include "config/log.hpp"

#include "config/error.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>

namespace troupe::log {

namespace {

constexpr const char* log_file_pattern = "%Y-%m-%d %H:%M:%S.%e %l %n: %v";
constexpr const char* log_stderr_pattern = "%l: %n: %v";

/// The sinks that every component's logger shares.
struct LogSinks {
  std::mutex mutex;
  std::shared_ptr<spdlog::sinks::sink> console;
  std::shared_ptr<spdlog::sinks::sink> file; ///< null until open()
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

void write_line(const char* component, spdlog::level::level_enum level,
                std::string_view text) {
  const spdlog::details::log_msg message(component, level, text);
  std::shared_ptr<spdlog::sinks::sink> file;
  std::shared_ptr<spdlog::sinks::sink> console;
  {
    std::lock_guard lock(log_sinks().mutex);
    file = log_sinks().file;
    console = log_sinks().console;
  }
  for (const auto& sink : {file, console}) {
    if (!sink || !sink->should_log(level))
      continue;
    sink->log(message);
    sink->flush(); // somebody follows the file, or a crash may come
  }
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
  std::lock_guard lock(log_sinks().mutex);
  log_sinks().file = std::move(sink);
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
