// Cases of kernels of experts: rules of routers, and tokens' experts.
#pragma once

#include "config/model/expert_shape.hpp"

#include <cstdint>
#include <random>
#include <vector>

namespace troupe::testing {

/// Returns a rule of each kind; numbers of experts are multiples of 12.
inline std::vector<RouterRule> router_rules() {
  return {
    {},
    {.renormalized = false},
    {.score = RouterScore::sigmoid, .corrected = true, .scale = 2.5},
    {.score = RouterScore::sigmoid, .renormalized = false},
    {.score = RouterScore::sigmoid,
     .corrected = true,
     .groups = 4,
     .chosen_groups = 2,
     .scale = 2.5},
    {.renormalized = false, .groups = 3, .chosen_groups = 2, .scale = 16}};
}

/// Returns experts of tokens: most choose low ones, and the last has no token.
inline std::vector<std::int32_t> skewed_experts(std::int64_t slots,
                                                std::int32_t experts) {
  std::mt19937 words(7);
  std::vector<std::int32_t> found;
  for (std::int64_t i = 0; i < slots; ++i) {
    const auto most = 1 + words() % static_cast<unsigned>(experts);
    found.push_back(static_cast<std::int32_t>(words() % most) % (experts - 1));
  }
  return found;
}

} // namespace troupe::testing
