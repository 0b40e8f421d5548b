// Human-readable numbers for tables, logs and the console: seconds, counts,
// bytes. Files that programs read have plain numbers instead.
#pragma once

#include <string>

namespace troupe::runtime {

/// Formats seconds: "0.31 s", "12.4 s", "2 min 05 s", "3 h 12 min".
std::string duration_text(double seconds);
/// Formats counts: "950", "8.4 k", "1.2 M".
std::string count_text(double count);
/// Formats bytes, with a GB of 10^9 bytes: "950 B", "8.4 kB", "1.2 GB".
std::string bytes_text(double bytes);
/// Formats three digits of any size without an exponent: "0.583", "13.0",
/// "1710".
std::string three_digits(double number);
/// Returns whether `fd` is a terminal that shows colours (NO_COLOR is
/// respected).
bool shows_colours(int fd);

} // namespace troupe::runtime
