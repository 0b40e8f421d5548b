// Presets that give calls groups of their own.
#include "plans/internal/preset_builder.hpp"
#include "plans/strategy_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans::internal {

namespace {

/// A training reads and writes about four times what an inference does.
constexpr double train_weight = 4;

double group_weight(const PresetBuilder& builder, const std::string& role) {
  return builder.num_parameters_of(role)
         * (builder.workflow().role(role).trained ? train_weight : 1.0);
}

std::pair<DeviceSpan, DeviceSpan> halves(DeviceSpan span) {
  const auto first = std::max(1u, span.count / 2);
  return {{span.first, first}, {span.first + first, span.count - first}};
}

/// Calls that generate, on tensor-parallel devices of `span`.
void place_generation(PresetBuilder& builder, DeviceSpan span) {
  for (const auto* call : builder.calls(CallKind::generate))
    builder.place_gathered(*call, span);
}

/// Every inference and training of `role` on `span`, sharded; the optimizer in
/// host memory where the devices are too small.
void place_role_sharded(PresetBuilder& builder, const std::string& role,
                        DeviceSpan span) {
  for (const auto& call : builder.workflow().calls)
    if (call.role == role && call.kind != CallKind::generate)
      builder.place_sharded(call, span);
  if (!builder.fits_sharded(role, span.count))
    builder.plan().roles[role].offload_optimizer = true;
}

/// A group a list of roles, beside a half for generation if there is one.
void place_role_groups(PresetBuilder& builder,
                       const std::vector<std::vector<std::string>>& groups) {
  auto rest = builder.everything();
  if (!builder.calls(CallKind::generate).empty()) {
    const auto spare = rest.count - static_cast<std::uint32_t>(groups.size());
    const DeviceSpan half{0, std::min(spare, std::max(1u, rest.count / 2))};
    place_generation(builder, half);
    rest = {half.count, rest.count - half.count};
  }
  std::vector<double> weights;
  for (const auto& roles : groups) {
    weights.push_back(0);
    for (const auto& role : roles)
      weights.back() += group_weight(builder, role);
  }
  const auto spans = cut_span(rest, weights);
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (const auto& role : groups[i])
      place_role_sharded(builder, role, spans[i]);
}

/// And one for generation.
std::uint32_t with_generation(const PresetBuilder& builder,
                              std::size_t groups) {
  const auto generates = !builder.calls(CallKind::generate).empty();
  return static_cast<std::uint32_t>(groups + (generates ? 1 : 0));
}

void need_groups(const PresetBuilder& builder, std::size_t groups,
                 const std::string& instead) {
  const auto count = with_generation(builder, groups);
  builder.need_devices(
    count, fmt::format("one for each of its {} groups", count), instead);
}

/// The calls at exclusive groups in proportion to the work of their models.
void place_exclusive(PresetBuilder& builder,
                     const std::vector<const Call*>& calls, DeviceSpan span) {
  std::vector<double> weights;
  for (const auto* call : calls)
    weights.push_back(builder.num_parameters_of(call->role));
  const auto spans = cut_span(span, weights);
  for (std::size_t i = 0; i < calls.size(); ++i)
    builder.place_fitting(*calls[i], spans[i]);
}

} // namespace

void build_openrlhf(PresetBuilder& builder) {
  std::vector<std::vector<std::string>> groups;
  for (const auto& role : builder.workflow().roles)
    groups.push_back({role.name});
  const auto trained
    = std::ranges::count_if(builder.workflow().roles, &Role::trained);
  const auto colocated
    = with_generation(builder, static_cast<std::size_t>(trained));
  need_groups(builder, groups.size(),
              builder.everything().count >= colocated ? "openrlhf_colocated"
                                                      : "deepspeed_chat");
  place_role_groups(builder, groups);
}

/// A role that is only read shares the group of a trained one: ref the actor's,
/// reward the critic's.
void build_openrlhf_colocated(PresetBuilder& builder) {
  std::vector<std::vector<std::string>> groups;
  for (const auto& role : builder.workflow().roles)
    if (role.trained)
      groups.push_back({role.name});
  for (const auto& role : builder.workflow().roles)
    if (!role.trained) {
      const bool beside_last = role.scalar_head && groups.size() > 1;
      (beside_last ? groups.back() : groups.front()).push_back(role.name);
    }
  need_groups(builder, groups.size(), "deepspeed_chat");
  place_role_groups(builder, groups);
}

void build_interleaving(PresetBuilder& builder) {
  constexpr int chunks = 4;
  builder.need_kind(CallKind::generate);
  builder.need_kind(CallKind::inference);
  const auto scoring = builder.calls(CallKind::inference);
  const auto trains = builder.calls(CallKind::train);
  const auto groups
    = static_cast<std::uint32_t>(std::max(scoring.size() + 1, trains.size()));
  builder.need_devices(
    groups,
    fmt::format("one for generation and one for each of {} scoring calls",
                scoring.size()),
    "data_parallel");
  const auto all = builder.everything();
  const auto spare = all.count - static_cast<std::uint32_t>(scoring.size());
  const auto half = std::min(spare, std::max(1u, all.count / 2));
  place_generation(builder, {0, half});
  place_exclusive(builder, scoring, {half, all.count - half});
  place_exclusive(builder, trains, all);
  for (const auto kind : {CallKind::generate, CallKind::inference})
    for (const auto* call : builder.calls(kind))
      builder.plan().calls[call->name].chunks = chunks;
}

void build_separation(PresetBuilder& builder) {
  builder.need_kind(CallKind::inference);
  builder.need_devices(2, "one to train and one for the rest", "single");
  const auto [work, train] = halves(builder.everything());
  for (const auto& call : builder.workflow().calls) {
    if (call.kind == CallKind::function)
      continue;
    const bool trains = call.kind == CallKind::train;
    builder.place_fitting(call, trains ? train : work);
    if (!trains && builder.workflow().role(call.role).trained)
      builder.plan().replicas[call.role + "@" + call.name] = true;
  }
}

void build_async(PresetBuilder& builder) {
  builder.need_kind(CallKind::generate);
  build_separation(builder);
  for (const auto* call : builder.calls(CallKind::generate))
    if (builder.workflow().role(call->role).trained)
      builder.plan().lag[call->name] = 1;
}

void build_real_heuristic(PresetBuilder& builder) {
  constexpr std::uint32_t tp_limit = 4;
  builder.need_kind(CallKind::generate);
  const auto trains = builder.calls(CallKind::train);
  builder.need_devices(static_cast<std::uint32_t>(trains.size()),
                       "one for each training", "single");
  const auto all = builder.everything();
  for (const auto* call : builder.calls(CallKind::generate)) {
    const auto shape = builder.shape_of(call->role);
    const auto stages = std::max(2u, builder.cluster().nodes);
    const auto pp = largest_pp(shape, stages, all.count);
    const auto tp = largest_tp(shape, tp_limit, all.count / pp);
    builder.place(*call, all, {.dp = all.count / pp / tp, .pp = pp, .tp = tp});
  }
  const auto [first, second] = halves(all);
  std::uint32_t number = 0;
  for (const auto* call : builder.calls(CallKind::inference)) {
    const bool whole = !builder.workflow().role(call->role).scalar_head;
    const auto half = number++ % 2 == 0 ? first : second;
    builder.place_tensor(*call, whole ? all : half, tp_limit);
    if (whole)
      --number;
  }
  std::vector<double> weights;
  for (const auto* call : trains)
    weights.push_back(builder.num_parameters_of(call->role));
  const auto spans = cut_span(all, weights);
  for (std::size_t i = 0; i < trains.size(); ++i) {
    const auto shape = builder.shape_of(trains[i]->role);
    const auto dp = spans[i].count % 2 == 0 ? 2u : 1u;
    const auto a_replica = spans[i].count / dp;
    const auto pp = largest_pp(shape, builder.nodes_of(spans[i]), a_replica);
    const auto tp = largest_tp(shape, tp_limit, a_replica / pp);
    builder.place(*trains[i], spans[i],
                  {.dp = spans[i].count / pp / tp, .pp = pp, .tp = tp});
  }
}

} // namespace troupe::plans::internal
