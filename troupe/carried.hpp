// Carried values: numbers that persist from step to step, such as an adaptive
// coefficient or a running mean.
//
//   constexpr Carried<float> level{"level", 1};
//   w.batch("raise", raise, reads(score, level), writes(keep, level));
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <type_traits>

namespace troupe {

/// A number that each step passes on to the next: the batch function that has
/// it in reads() and writes() receives the value of the previous step and
/// returns the value for the next one. Checkpoints store it.
template <class T>
struct Carried {
  static_assert(
    std::is_same_v<
      T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t>,
    "a carried value is a float, double or std::int32_t");
  using Value = T;

  constexpr Carried(const char* value_name, std::type_identity_t<T> first)
    : name(value_name),
      initial(first) {}
  const char* name;
  T initial; ///< value in the first step
};

/// A carried value without its type; double represents all of them exactly.
struct CarriedInfo {
  std::string name;
  double initial = 0;

  bool operator==(const CarriedInfo&) const = default;
};

template <class T>
CarriedInfo info(Carried<T> value) {
  return {value.name, static_cast<double>(value.initial)};
}

namespace detail {

/// Carried values by name.
using CarriedValues = std::map<std::string, double, std::less<>>;

} // namespace detail

} // namespace troupe
