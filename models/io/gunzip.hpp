// Reads what gzip wrote: one member or several after each other, as `cat` of
// compressed files makes them. The text goes out in parts, so a file may be
// larger than memory.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace troupe::models {

/// Returns true for the first bytes of a gzip file.
bool is_gzip(std::string_view bytes);

/// Hands the text of `packed` to `write`, in parts. Throws ConfigError that
/// names `file` if it is cut off or damaged (each member has a checksum).
void gunzip(std::string_view packed, const std::string& file,
            const std::function<void(std::string_view)>& write);

} // namespace troupe::models
