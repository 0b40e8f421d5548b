// "Did you mean": the nearest of a few valid names, for error lines.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe::plans {

/// `nearest_word` of config/nearest.hpp.
std::string nearest(std::string_view name, std::span<const std::string> valid);

/// "'x'" or nothing.
std::string quoted_nearest(std::string_view name,
                           std::span<const std::string> valid);

/// "; try 'x'" or nothing.
std::string nearest_hint(std::string_view name,
                         std::span<const std::string> valid);

} // namespace troupe::plans
