// Which strategies a model's shape allows: tensor parallelism cuts heads,
// pipelines cut layers. One place, for the checker, the presets and the search.
#pragma once

#include "config/model_shape.hpp"
#include "config/strategy.hpp"

#include <cstdint>
#include <string>

namespace troupe::plans {

/// Heads are dealt whole; KV heads are dealt whole or replicated whole times.
bool is_legal_tp(const ModelShape& shape, std::uint32_t tp);
/// The largest legal degree that divides `divides` and is at most `limit`.
std::uint32_t largest_tp(const ModelShape& shape, std::uint32_t limit,
                         std::uint32_t divides);
/// The largest number of stages that divides `divides`, is at most `limit` and
/// leaves each stage a layer.
std::uint32_t largest_pp(const ModelShape& shape, std::uint32_t limit,
                         std::uint32_t divides);

/// Of `num_devices`: lowers the degrees that do not divide them or that the
/// shape does not allow; dp takes what is free.
Strategy nearest_strategy(Strategy strategy, std::uint32_t num_devices,
                          const ModelShape& shape);

/// "expected .." with the nearest legal strategy on as many devices; empty if
/// `strategy` is legal.
std::string why_illegal(const Strategy& strategy, const ModelShape& shape);

} // namespace troupe::plans
