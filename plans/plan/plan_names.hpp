// "Did you mean": the nearest of a few valid names, for error lines.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe::plans {

/// Returns `nearest_word` of config/base/did_you_mean.hpp.
std::string nearest(std::string_view name, std::span<const std::string> valid);

/// Returns "'x'" or nothing.
std::string quoted_nearest(std::string_view name,
                           std::span<const std::string> valid);

/// Returns "; try 'x'" or nothing.
std::string nearest_hint(std::string_view name,
                         std::span<const std::string> valid);

} // namespace troupe::plans
