// Strategies in a search space: degrees that fit a mesh, experts dealt to its
// devices, tokens cut over them, shardings over dp and chunks.
#include "plans/plan/strategy_rules.hpp"
#include "plans/search/context_degrees.hpp"
#include "plans/search/search_space.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace troupe::plans {

namespace {

/// Returns how many devices may have a layer's experts between them: 1, where
/// tp cuts each; the tensor-parallel ranks, to which no token is sent; and, for
/// the least memory, the devices of a stage, those of a node or all.
std::set<std::uint32_t> expert_degrees(const ModelShape& shape,
                                       const Strategy& strategy,
                                       std::uint32_t node) {
  if (!shape.experts.exist())
    return {1};
  const auto stage = strategy.dp * strategy.tp;
  return {1, strategy.tp, std::gcd(stage, node), stage};
}

} // namespace

void SearchSpace::add_strategies(SpaceCall& call, std::uint32_t num_devices,
                                 KindSet kinds) {
  const auto node = problem_.cluster.devices_per_node;
  const auto in_node = std::min(node, num_devices);
  for (std::uint32_t tp = 1; tp <= in_node; ++tp)
    for (std::uint32_t pp = 1; pp * tp <= num_devices; ++pp)
      if (num_devices % (tp * pp) == 0 && in_node % tp == 0)
        add_degrees(call, {.num_devices = num_devices,
                           .kinds = kinds,
                           .strategy = {
                             .dp = num_devices / tp / pp, .pp = pp, .tp = tp}});
}

/// Adds an option's degrees, with experts dealt in every way that may pay off.
void SearchSpace::add_degrees(SpaceCall& call, CallOption option) {
  const auto& shape = problem_.shapes.at(call.call->role);
  const bool decodes = call.call->kind == CallKind::generate;
  auto& strategy = option.strategy;
  const auto context = context_degrees(
    problem_, *call.call, placement(option, 0), memory_bytes(option.kinds));
  for (const auto ep :
       expert_degrees(shape, strategy, problem_.cluster.devices_per_node))
    for (const auto cp : context) {
      strategy.ep = ep;
      strategy.cp = cp;
      if (!why_illegal(strategy, shape).empty()
          || (decodes && !why_not_decoding(strategy).empty())
          || !allows(*call.call, strategy))
        ++counts_.illegal;
      else
        add_variants(call, option);
    }
}

/// Adds shardings, micro-batchings, chunks and offloads that may pay off.
void SearchSpace::add_variants(SpaceCall& call, CallOption option) {
  const auto kind = call.call->kind;
  const auto samples = samples_of(problem_, *call.call);
  if (option.strategy.sample_ranks() > samples) {
    ++counts_.illegal;
    return;
  }
  std::vector<Zero> zeros = {Zero::none};
  if (kind == CallKind::train && option.strategy.dp > 1)
    zeros = {Zero::z1, Zero::z3, Zero::none};
  std::vector<int> chunk_counts = {1};
  if (limits_.chunks && kind != CallKind::train)
    chunk_counts = {1, 2, 4};
  const auto a_rank = std::max(1u, samples / option.strategy.sample_ranks());
  const auto stage_with = [&](Zero zero) -> const StageBytes& {
    option.strategy.zero = zero;
    return stage_of(call.call->role, option.strategy);
  };
  if (kind == CallKind::inference && option.strategy.dp > 1
      && stage_with(Zero::none).weights > memory_bytes(option.kinds) / 4)
    zeros.push_back(Zero::z3);          // where weights take much of a device
  std::erase_if(zeros, [&](Zero zero) { // adapters, experts over dp ranks
    auto cut = option.strategy;
    cut.zero = zero;
    return !why_illegal(cut, problem_.shapes.at(call.call->role)).empty();
  });
  for (const auto zero : zeros) {
    const auto& stage = stage_with(zero);
    for (const auto chunks : chunk_counts) {
      option.chunks = chunks;
      add_batchings(call, option, stage, static_cast<int>(a_rank));
    }
  }
}

} // namespace troupe::plans
