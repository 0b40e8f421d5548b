// Which strategies a model's shape allows: tensor parallelism cuts heads,
// pipelines cut layers. The single place for the checker, the presets and the
// search.
#pragma once

#include "config/base/strategy.hpp"
#include "config/model/model_shape.hpp"

#include <cstdint>
#include <string>

namespace troupe::plans {

/// Returns whether a shape can be split over `tp` peers: heads are assigned
/// whole, KV heads whole or replicated a whole number of times, and each peer
/// has a part of the MLP and the vocabulary.
bool is_legal_tp(const ModelShape& shape, std::uint32_t tp);
/// Returns the largest legal degree that divides `divides` and is at most
/// `limit`.
std::uint32_t largest_tp(const ModelShape& shape, std::uint32_t limit,
                         std::uint32_t divides);
/// Returns the largest number of stages that divides `divides`, is at most
/// `limit` and leaves each stage at least one layer.
std::uint32_t largest_pp(const ModelShape& shape, std::uint32_t limit,
                         std::uint32_t divides);

/// Returns the nearest legal strategy on `num_devices`: lowers the degrees that
/// do not divide them or that the shape does not allow; dp gets the rest.
Strategy nearest_strategy(Strategy strategy, std::uint32_t num_devices,
                          const ModelShape& shape);

/// Returns "expected ..." with the nearest legal strategy on as many devices;
/// empty if `strategy` is legal.
std::string why_illegal(const Strategy& strategy, const ModelShape& shape);
/// Returns the same of a legal strategy that cannot generate: dp ranks decode
/// different numbers of tokens, so they cannot exchange them in every layer,
/// and a token that is added cannot be cut.
std::string why_not_decoding(const Strategy& strategy);

} // namespace troupe::plans
