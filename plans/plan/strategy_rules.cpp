#include "plans/plan/strategy_rules.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace troupe::plans {

namespace {

/// Returns the number of layers. 0 means an unknown shape, for which everything
/// is legal.
std::int64_t rules_layers(const ModelShape& shape) {
  return shape.num_layers > 0 ? shape.num_layers : 1 << 20;
}

/// Returns whether runs of ceil(size / parts) leave no part empty; an unknown
/// size (0) counts as such.
bool everybody_has_some(std::int64_t size, std::int64_t parts) {
  return size == 0 || (size + parts - 1) / parts * (parts - 1) < size;
}

bool deals_heads(const ModelShape& shape, std::int64_t tp) {
  return shape.num_heads % tp == 0
         && (shape.num_kv_heads % tp == 0
             || (shape.num_kv_heads > 0 && tp % shape.num_kv_heads == 0));
}

/// Returns the least intermediate size of a layer's MLP or experts.
std::int64_t narrowest_mlp(const ModelShape& shape) {
  const ExpertShape& experts = shape.experts;
  const bool has_dense_layers = !experts.exist()
                                || std::ranges::find(experts.dense_layers, true)
                                     != experts.dense_layers.end();
  auto least = has_dense_layers ? shape.intermediate_size : experts.width;
  for (const auto width : {experts.width, experts.shared_width})
    if (width > 0)
      least = std::min(least, width);
  return least;
}

} // namespace

bool is_legal_tp(const ModelShape& shape, std::uint32_t tp) {
  return deals_heads(shape, tp) && everybody_has_some(narrowest_mlp(shape), tp)
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

namespace {

/// Returns why a layer's experts cannot be dealt like this; empty: they can.
std::string why_not_dealt(const Strategy& strategy, const ModelShape& shape) {
  const auto devices = strategy.dp * strategy.tp;
  if (strategy.ep == 1 || shape.num_layers == 0)
    return "";
  if (!shape.experts.exist())
    return "no expert parallelism (e) for a model without experts";
  if (shape.experts.count % strategy.ep != 0)
    return fmt::format("expert parallelism (e) that divides {} experts",
                       shape.experts.count);
  if (strategy.ep % strategy.tp != 0 || devices % strategy.ep != 0)
    return fmt::format("expert parallelism (e) that is a multiple of t{} and "
                       "divides the {} devices of a stage",
                       strategy.tp, devices);
  if (strategy.expert_group_dp() > 1 && strategy.zero == Zero::z3)
    return fmt::format("no z3 where experts are dealt to data-parallel ranks "
                       "(z1 cuts the optimizer, e{} leaves z3)",
                       strategy.tp);
  return "";
}

/// Returns why the tokens of a sample cannot be cut like this; empty: they can.
std::string why_not_cut(const Strategy& strategy) {
  if (strategy.cp == 1)
    return "";
  if (strategy.dp % strategy.cp != 0)
    return fmt::format("context parallelism (c) that divides the {} ranks with "
                       "the same weights",
                       strategy.dp);
  if (strategy.expert_group_dp() > 1)
    return fmt::format("no context parallelism (c) where experts are dealt to "
                       "data-parallel ranks (at most e{})",
                       strategy.tp);
  return "";
}

} // namespace

Strategy nearest_strategy(Strategy strategy, std::uint32_t num_devices,
                          const ModelShape& shape) {
  strategy.tp = largest_tp(shape, strategy.tp, num_devices);
  strategy.pp = largest_pp(shape, strategy.pp, num_devices / strategy.tp);
  strategy.dp = num_devices / strategy.tp / strategy.pp;
  strategy.cp = std::gcd(strategy.cp, strategy.dp);
  strategy.zero = strategy.dp == 1 ? Zero::none : strategy.zero;
  if (shape.lora.exists() && strategy.zero == Zero::z3)
    strategy.zero = Zero::z1;
  strategy.sequence_parallel = strategy.sequence_parallel && strategy.tp > 1;
  if (!why_not_dealt(strategy, shape).empty() || !why_not_cut(strategy).empty())
    strategy.ep = strategy.tp;
  if (!why_not_dealt(strategy, shape).empty())
    strategy.ep = 1;
  return strategy;
}

namespace {

/// Returns "t2 or t4": the legal degrees next to `tp`.
std::string nearest_tps(const ModelShape& shape, std::uint32_t tp) {
  auto below = tp - 1; // t1 is legal
  while (!is_legal_tp(shape, below))
    --below;
  const auto text = fmt::format("t{}", below);
  for (auto above = tp + 1; std::int64_t{above} <= shape.num_heads; ++above)
    if (is_legal_tp(shape, above))
      return text + fmt::format(" or t{}", above);
  return text;
}

} // namespace

std::string why_illegal(const Strategy& strategy, const ModelShape& shape) {
  const auto wrong = [&](const std::string& expected) {
    return expectation(
      expected, to_string(strategy),
      to_string(nearest_strategy(strategy, strategy.num_devices(), shape)));
  };
  if (!deals_heads(shape, strategy.tp))
    return wrong(fmt::format("tensor parallelism (t) that divides {} heads, "
                             "and divides or is a multiple of {} KV heads (as "
                             "{})",
                             shape.num_heads, shape.num_kv_heads,
                             nearest_tps(shape, strategy.tp)));
  if (!is_legal_tp(shape, strategy.tp))
    return wrong(fmt::format("tensor parallelism (t) that leaves each device "
                             "a part of {} MLP columns and {} token ids (as "
                             "{})",
                             narrowest_mlp(shape), shape.vocab_size,
                             nearest_tps(shape, strategy.tp)));
  if (std::int64_t{strategy.pp} > rules_layers(shape))
    return wrong(fmt::format("at most p{}, as many stages as the model has "
                             "layers",
                             shape.num_layers));
  if (const auto expected = why_not_dealt(strategy, shape); !expected.empty())
    return wrong(expected);
  if (const auto expected = why_not_cut(strategy); !expected.empty())
    return wrong(expected);
  if (strategy.sequence_parallel && strategy.tp == 1)
    return wrong("t2 or more for sequence parallelism (s)");
  if (shape.lora.exists() && strategy.zero == Zero::z3)
    return wrong("no z3 for a model with adapters, whose frozen weights are "
                 "whole (z1 cuts the optimizer)");
  return "";
}

std::string why_not_decoding(const Strategy& strategy) {
  if (strategy.cp > 1) {
    Strategy whole = strategy;
    whole.cp = 1;
    return expectation("no context parallelism (c) for a generation, which "
                       "adds one token at a time",
                       to_string(strategy), to_string(whole));
  }
  if (strategy.expert_group_dp() == 1)
    return "";
  Strategy on_tensor_ranks = strategy;
  on_tensor_ranks.ep = strategy.tp;
  return expectation(fmt::format("experts that the tensor parallel ranks of a "
                                 "generation have between them (at most e{})",
                                 strategy.tp),
                     to_string(strategy), to_string(on_tensor_ranks));
}

} // namespace troupe::plans
