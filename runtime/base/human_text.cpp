#include "runtime/base/human_text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace troupe::runtime {

std::string duration_text(double seconds) {
  if (seconds < 0.0995)
    return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 9.995)
    return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.95)
    return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 3600)
    return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string count_text(double count) {
  if (count < 999.5)
    return fmt::format("{:.0f}", count);
  if (count < 999.5e3)
    return fmt::format("{:.1f} k", count / 1e3);
  if (count < 999.5e6)
    return fmt::format("{:.1f} M", count / 1e6);
  return fmt::format("{:.1f} G", count / 1e9);
}

std::string bytes_text(double bytes) {
  constexpr std::array units{"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < units.size()) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes)
                   : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string three_digits(double number) {
  if (number == 0 || !std::isfinite(number))
    return fmt::format("{:.0f}", number);
  const auto rounded = std::stod(fmt::format("{:.2e}", number));
  const auto exponent
    = static_cast<int>(std::floor(std::log10(std::abs(rounded))));
  return fmt::format("{:.{}f}", rounded, std::max(0, 2 - exponent));
}

bool shows_colours(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(fd) == 1 && (no_color == nullptr || *no_color == '\0');
}

} // namespace troupe::runtime
