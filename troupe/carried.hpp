// Carried values: numbers that live from step to step, as an adaptive
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

/// A number that each step hands to the next: the batch function that has it in
/// reads() and writes() gets what the step before left and gives what the next
/// one gets. Checkpoints keep it.
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
  T initial; ///< what the first step gets
};

/// A carried value without its type; double holds all of them exactly.
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

/// By name.
using CarriedValues = std::map<std::string, double, std::less<>>;

} // namespace detail

} // namespace troupe
