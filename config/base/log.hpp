// Loggers per component: `log::net.info("...")`. spdlog and fmt stay in the
// source: callers format with std::string, or with fmt in their .cpp files.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string_view>

namespace troupe::log {

enum class Level { debug, info, warn, error, off };

/// Length of the timestamp at the start of a log line.
inline constexpr std::size_t stamp_length = 23;

class Component {
public:
  constexpr explicit Component(const char* name) : name_(name) {}
  void debug(std::string_view text) const;
  void info(std::string_view text) const;
  void warn(std::string_view text) const;
  void error(std::string_view text) const;
  /// Logs a warning to the file only, because stdout shows it in another form.
  void warn_file(std::string_view text) const;

private:
  const char* name_;
};

inline constexpr Component config{"config"};
inline constexpr Component plans{"plans"};
inline constexpr Component net{"net"};
inline constexpr Component models{"models"};
inline constexpr Component actors{"actors"};
inline constexpr Component runtime{"runtime"};
inline constexpr Component data{"data"}; ///< mistakes in users' rows

/// A limit for warnings that strangers can cause as often as they like: ten a
/// minute. Thread-safe.
class WarningLimit {
public:
  using Time = std::chrono::steady_clock::time_point;

  /// Returns how many were left out since the last one that was not; nothing if
  /// this one is left out too.
  std::optional<std::uint64_t> allow(Time now);

private:
  std::mutex mutex_;
  Time minute_{};           ///< begin of the current one
  std::uint64_t given_ = 0; ///< in it
  std::uint64_t left_out_ = 0;
};
/// Warns of something that strangers do, within one limit for the process.
void warn_of_stranger(const Component& component, std::string_view text);

/// Bytes over which a log file is renamed to NAME.1 (replacing one) when the
/// next process opens it.
inline constexpr std::uintmax_t max_log_bytes = std::uintmax_t{64} << 20;
/// Makes room for a process that is about to append to `file`.
void renew_log(const std::filesystem::path& file);

/// Appends everything from `level` up to `file`, including what was logged
/// before this call; warnings and errors also go to stderr.
void open(const std::filesystem::path& file, Level level);
/// Delays lines for stderr during its lifetime and writes them at its end, so
/// that warnings at startup follow the startup tables.
class HeldConsole {
public:
  HeldConsole();
  ~HeldConsole();
  HeldConsole(const HeldConsole&) = delete;
  HeldConsole& operator=(const HeldConsole&) = delete;
};
/// Prefixes lines on stderr with their time, as in the file: for a stderr that
/// is itself a log.
void stamp_console();
/// Writes buffered lines; called before the process ends.
void flush();

} // namespace troupe::log
