#include "plans/strategy_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

/// Zero means that the shape is not known: everything is legal then.
std::int64_t rules_layers(const ModelShape& shape) {
  return shape.num_layers > 0 ? shape.num_layers : 1 << 20;
}

/// Lowers the degrees that the shape does not allow; dp takes what is free.
Strategy nearest_legal(Strategy strategy, const ModelShape& shape) {
  const auto devices = strategy.num_devices();
  strategy.tp = largest_tp(shape, strategy.tp, devices);
  strategy.pp = largest_pp(shape, strategy.pp, devices / strategy.tp);
  strategy.dp = devices / strategy.tp / strategy.pp;
  strategy.sequence_parallel = strategy.sequence_parallel && strategy.tp > 1;
  return strategy;
}

/// Whether runs of ceil(size / parts) leave nobody without any; an unknown size
/// (0) does not.
bool everybody_has_some(std::int64_t size, std::int64_t parts) {
  return size == 0 || (size + parts - 1) / parts * (parts - 1) < size;
}

bool deals_heads(const ModelShape& shape, std::int64_t tp) {
  return shape.num_heads % tp == 0
         && (shape.num_kv_heads % tp == 0
             || (shape.num_kv_heads > 0 && tp % shape.num_kv_heads == 0));
}

} // namespace

bool is_legal_tp(const ModelShape& shape, std::uint32_t tp) {
  return deals_heads(shape, tp)
         && everybody_has_some(shape.intermediate_size, tp)
         && everybody_has_some(shape.vocab_size, tp);
}

std::uint32_t largest_tp(const ModelShape& shape, std::uint32_t limit,
                         std::uint32_t divides) {
  auto tp = std::max(1u, std::min(limit, divides));
  while (divides % tp != 0 || !is_legal_tp(shape, tp))
    --tp;
  return tp;
}

std::uint32_t largest_pp(const ModelShape& shape, std::uint32_t limit,
                         std::uint32_t divides) {
  auto pp = std::max(1u, std::min(limit, divides));
  while (divides % pp != 0 || std::int64_t{pp} > rules_layers(shape))
    --pp;
  return pp;
}

std::string why_illegal(const Strategy& strategy, const ModelShape& shape) {
  const auto instead = fmt::format("got {}; try {}", to_string(strategy),
                                   to_string(nearest_legal(strategy, shape)));
  if (!deals_heads(shape, strategy.tp))
    return fmt::format("t{} must divide {} heads, and divide or be a multiple "
                       "of {} KV heads, {}",
                       strategy.tp, shape.num_heads, shape.num_kv_heads,
                       instead);
  if (!is_legal_tp(shape, strategy.tp))
    return fmt::format("t{} leaves a device without a part of {} MLP columns "
                       "or {} ids, {}",
                       strategy.tp, shape.intermediate_size, shape.vocab_size,
                       instead);
  if (std::int64_t{strategy.pp} > rules_layers(shape))
    return fmt::format("p{} needs at least {} layers, the model has {}, {}",
                       strategy.pp, strategy.pp, shape.num_layers, instead);
  if (strategy.sequence_parallel && strategy.tp == 1)
    return fmt::format("sequence parallelism (s) needs t2 or more, {}",
                       instead);
  return "";
}

} // namespace troupe::plans
