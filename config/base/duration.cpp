#include "config/base/duration.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace troupe {

namespace {

constexpr double duration_limit_s = 1e9; // 31 years

/// Returns the seconds of "HH:MM:SS" or "MM:SS"; nullopt for any other text.
std::optional<double> parse_clock_s(std::string_view text) {
  double sum_s = 0;
  int num_parts = 0;
  while (true) {
    unsigned part = 0;
    const auto [end, error]
      = std::from_chars(text.data(), text.data() + text.size(), part);
    if (error != std::errc{} || (num_parts > 0 && part > 59))
      return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    sum_s = 60 * sum_s + part;
    ++num_parts;
    if (text.empty())
      break;
    if (text.front() != ':')
      return {};
    text.remove_prefix(1);
  }
  if (num_parts < 2 || num_parts > 3)
    return {};
  return sum_s;
}

double seconds_of_unit(char unit) {
  switch (unit) {
  case 's':
    return 1;
  case 'm':
    return 60;
  case 'h':
    return 3600;
  case 'd':
    return 86400;
  default:
    return 0;
  }
}

} // namespace

std::optional<double> parse_duration_s(const std::string& whole) {
  if (whole.find(':') != whole.npos)
    return parse_clock_s(whole);
  std::string_view text = whole;
  double sum_s = 0;
  double last_unit_s = 1e300;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error]
      = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || !(number >= 0) || number > duration_limit_s)
      return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const double unit_s = text.empty() ? 1 : seconds_of_unit(text.front());
    if (unit_s == 0 || unit_s >= last_unit_s)
      return {};
    text.remove_prefix(text.empty() ? 0 : 1);
    sum_s += number * unit_s;
    last_unit_s = unit_s;
  }
  if (sum_s <= 0 || sum_s > duration_limit_s)
    return {};
  return sum_s;
}

} // namespace troupe
