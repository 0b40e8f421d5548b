// Responses as an actor trains on them, without a call that scores them.
#pragma once

#include "net/base/rows.hpp"

#include "tests/support/models/engine_support.hpp"

#include <cstdint>
#include <vector>

namespace troupe::testing {

/// Returns the rows with `advantages` that change sign within each response.
inline net::Rows with_advantages(net::Rows rows) {
  std::vector<std::vector<float>> advantages;
  float sign = 1;
  for (const std::uint32_t length : rows.at("logprobs").lengths) {
    advantages.emplace_back();
    for (std::uint32_t t = 0; t < length; ++t)
      advantages.back().push_back((sign = -sign) + 0.25F);
  }
  rows.add(column_of("advantages", DType::f32, advantages));
  return rows;
}

} // namespace troupe::testing
