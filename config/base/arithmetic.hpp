// Integer arithmetic that several layers need: division and rounding upwards.
#pragma once

#include <concepts>
#include <type_traits>

namespace troupe {

/// Returns a / b rounded up, for a >= 0 and b > 0.
template <std::integral A, std::integral B>
constexpr std::common_type_t<A, B> ceil_div(A a, B b) {
  return (a + b - 1) / b;
}

/// Returns the smallest multiple of `unit` that is at least `number`.
template <std::integral A, std::integral B>
constexpr std::common_type_t<A, B> round_up(A number, B unit) {
  return ceil_div(number, unit) * unit;
}

} // namespace troupe
