// Component loggers: `log::net.info("...")`. spdlog and fmt stay in the source:
// callers format with std::string or fmt in their own .cpp files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace troupe::log {

enum class Level { debug, info, warn, error, off };

/// Of the time that a line of a log begins with.
inline constexpr std::size_t stamp_length = 23;

class Component {
public:
  constexpr explicit Component(const char* name) : name_(name) {}
  void debug(std::string_view text) const;
  void info(std::string_view text) const;
  void warn(std::string_view text) const;
  void error(std::string_view text) const;
  /// A warning that stdout shows in its own way: to the file alone.
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
inline constexpr Component data{"data"}; ///< what is wrong with users' rows

/// Everything from `level` up goes to `file` (appended), also what was logged
/// before this call; warnings and errors go to stderr too.
void open(const std::filesystem::path& file, Level level);
/// While one lives, lines for stderr wait; its end writes them. So that
/// warnings of a start come after its tables.
class HeldConsole {
public:
  HeldConsole();
  ~HeldConsole();
  HeldConsole(const HeldConsole&) = delete;
  HeldConsole& operator=(const HeldConsole&) = delete;
};
/// Lines on stderr look as in the file, with their time: where it is a log.
void stamp_console();
/// Writes what is buffered; call before the process ends.
void flush();

} // namespace troupe::log
