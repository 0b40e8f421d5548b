// Random numbers that are the same on every machine: the standard's generator,
// but none of its distributions, whose results each library may choose.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

namespace tiny {

class Seeded {
public:
  explicit Seeded(std::uint64_t seed) : bits_(seed) {}

  /// Draws uniformly from [0, count); the bias of the remainder is below 2^-50
  /// here.
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(bits_() % count);
  }
  /// Draws uniformly from [0, 1).
  double uniform() {
    constexpr double unit = 0x1p-53;
    return static_cast<double>(bits_() >> 11) * unit;
  }
  /// Draws from the normal distribution with mean 0 and deviation 1
  /// (Box-Muller).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }
  /// Returns one of `items`, each with equal probability.
  template <class T>
  const T& one_of(const std::vector<T>& items) {
    return items[below(items.size())];
  }
  /// Shuffles `items` (Fisher-Yates).
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1], items[below(i)]);
  }

private:
  std::mt19937_64 bits_;
};

} // namespace tiny
