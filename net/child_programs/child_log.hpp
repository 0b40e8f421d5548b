// The log of a program: what it wrote to its standard error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::net {

/// Returns its bytes; 0 if it does not exist yet.
std::uintmax_t size_of_log(const std::filesystem::path& log);
/// Returns the last line after the first `begin` bytes that is not blank; "" if
/// there is none.
std::string last_line_of(const std::filesystem::path& log,
                         std::uintmax_t begin);

} // namespace troupe::net
