// Presets that place calls on separate groups of devices.
#include "plans/plan/strategy_rules.hpp"
#include "plans/presets/preset_builder.hpp"
#include "plans/workflow/second_roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace troupe::plans::internal {

namespace {

/// Training reads and writes about four times as much as inference.
constexpr double train_weight = 4;

std::pair<DeviceSpan, DeviceSpan> halves(DeviceSpan span) {
  const auto first = std::max(1u, span.count / 2);
  return {{span.first, first}, {span.first + first, span.count - first}};
}

/// Places calls that generate on tensor-parallel devices of `span`.
void place_generation(PresetBuilder& builder, DeviceSpan span) {
  for (const auto* call : builder.calls(CallKind::generate))
    builder.place_gathered(*call, span);
}

/// Places every inference and training of `role` on `span`, sharded; the
/// optimizer in host memory where the devices are too small.
void place_role_sharded(PresetBuilder& builder, const std::string& role,
                        DeviceSpan span) {
  for (const auto& call : builder.workflow().calls)
    if (call.role == role && call.kind != CallKind::generate)
      builder.place_sharded(call, span);
  if (!builder.fits_sharded(role, span.count))
    builder.plan().roles[role].offload_optimizer = true;
}

using RoleGroup = std::vector<std::string>;

std::uint32_t power_of_two_in(std::uint32_t number) {
  return std::bit_floor(std::max(1u, number));
}

/// Devices of each group, powers of two like vLLM engines and ZeRO groups in
/// OpenRLHF's recipes, and how long they would score and train.
struct GroupSplit {
  std::vector<std::uint32_t> counts = {};
  /// Groups whose training state does not fit; then scoring plus training of
  /// the slowest group, for groups that work in parallel; then the sum over
  /// groups.
  std::array<double, 3> cost = {};
};

/// Finds the best split of `devices` into groups, by the models' work and by
/// what fits the devices' memory: a preset's plan must not depend on the
/// hardware's rates, but may depend on its memory.
class SplitSearch {
public:
  SplitSearch(const PresetBuilder& builder,
              const std::vector<RoleGroup>& groups)
    : builder_(builder),
      groups_(groups) {}

  GroupSplit best(std::uint32_t devices) {
    GroupSplit split;
    extend(split, devices);
    return best_;
  }

private:
  void extend(GroupSplit& split, std::uint32_t devices) {
    if (split.counts.size() == groups_.size()) {
      split.cost = cost_of(split.counts);
      if (best_.counts.empty() || split.cost < best_.cost)
        best_ = split;
      return;
    }
    const auto others
      = static_cast<std::uint32_t>(groups_.size() - split.counts.size() - 1);
    for (std::uint32_t count = 1; count + others <= devices; count *= 2) {
      split.counts.push_back(count);
      extend(split, devices - count);
      split.counts.pop_back();
    }
  }

  std::array<double, 3>
  cost_of(const std::vector<std::uint32_t>& counts) const {
    double too_large = 0, scores = 0, trains = 0, all = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      double read = 0, trained = 0;
      for (const auto& role : groups_[i]) {
        const auto work = builder_.num_parameters_of(role) / counts[i];
        const bool is_trained = builder_.workflow().role(role).trained;
        trained += is_trained ? train_weight * work : 0;
        read += scores_samples(role) ? work : 0;
        too_large += !builder_.holds_sharded({role}, counts[i]);
      }
      scores = std::max(scores, read);
      trains = std::max(trains, trained);
      all += read + trained;
    }
    return {too_large, scores + trains, all};
  }

  bool scores_samples(const std::string& role) const {
    return std::ranges::any_of(
      builder_.workflow().calls, [&](const Call& call) {
        return call.role == role && call.kind == CallKind::inference;
      });
  }

  const PresetBuilder& builder_;
  const std::vector<RoleGroup>& groups_;
  GroupSplit best_;
};

/// Groups of roles and the number of devices that generate in parallel with
/// them.
struct RecipeGroups {
  std::vector<RoleGroup> groups = {};
  std::uint32_t generating = 0;
  GroupSplit split = {};
};

/// Returns the best recipe. Half of the devices generate, as OpenRLHF's tuning
/// guide recommends; a quarter, as in its script for 70B, where the rest would
/// be too small for the models.
RecipeGroups best_recipe(const PresetBuilder& builder,
                         const std::vector<std::vector<RoleGroup>>& choices) {
  const auto all = builder.everything().count;
  const bool generates = !builder.calls(CallKind::generate).empty();
  RecipeGroups best;
  for (const auto& groups : choices)
    for (const auto share : {2u, 4u}) {
      const auto spare = all - static_cast<std::uint32_t>(groups.size());
      const auto count
        = generates ? power_of_two_in(std::min(spare, all / share)) : 0;
      const auto split = SplitSearch(builder, groups).best(all - count);
      if (best.groups.empty() || split.cost[0] < best.split.cost[0])
        best = {groups, count, split};
    }
  return best;
}

/// Offloads the roles of a group that are only read where the group's training
/// state needs their memory (--ref_reward_offload).
void offload_readers(PresetBuilder& builder, const RoleGroup& group,
                     DeviceSpan span) {
  if (builder.holds_sharded(group, span.count))
    return;
  for (const auto& role : group)
    if (!builder.workflow().role(role).trained && group.size() > 1
        && !is_second_role(builder.workflow(), role))
      builder.plan().roles[role].offload_weights = true;
}

/// Places one group per list of roles, separate from the devices that generate.
void place_recipe(PresetBuilder& builder,
                  const std::vector<std::vector<RoleGroup>>& choices) {
  const auto recipe = best_recipe(builder, choices);
  DeviceSpan span{0, recipe.generating};
  if (span.count > 0)
    place_generation(builder, span);
  for (std::size_t i = 0; i < recipe.groups.size(); ++i) {
    span = {span.first + span.count, recipe.split.counts[i]};
    for (const auto& role : recipe.groups[i])
      place_role_sharded(builder, role, span);
    offload_readers(builder, recipe.groups[i], span);
  }
}

/// Returns the roles that have calls of their own: those that only speak in
/// conversations of others are placed with these.
std::vector<Role> placed_roles(const Workflow& workflow) {
  std::vector<Role> roles;
  for (const auto& role : workflow.roles)
    if (std::ranges::find(workflow.calls, role.name, &Call::role)
        != workflow.calls.end())
      roles.push_back(role);
  return roles;
}

/// Returns groups in which each role that is only read shares the devices of a
/// trained one: ref the actor's, reward the critic's.
std::vector<RoleGroup> colocated_groups(const Workflow& workflow) {
  std::vector<RoleGroup> groups;
  const auto roles = placed_roles(workflow);
  for (const auto& role : roles)
    if (role.trained)
      groups.push_back({role.name});
  for (const auto& role : roles)
    if (!role.trained) {
      const bool beside_last = role.scalar_head && groups.size() > 1;
      (beside_last ? groups.back() : groups.front()).push_back(role.name);
    }
  return groups;
}

/// Returns the number of groups, counting one for generation.
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

/// Places the calls on exclusive groups in proportion to the work of their
/// models.
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

/// Places roles on groups. Where those of trained models are too small, groups
/// are merged, as OpenRLHF's recipe for 8 devices does (--colocate_actor_ref,
/// --colocate_critic_reward).
void build_openrlhf(PresetBuilder& builder) {
  std::vector<RoleGroup> groups;
  for (const auto& role : placed_roles(builder.workflow()))
    groups.push_back({role.name});
  const auto merged = colocated_groups(builder.workflow());
  need_groups(builder, groups.size(),
              builder.everything().count
                  >= with_generation(builder, merged.size())
                ? "openrlhf_colocated"
                : "deepspeed_chat");
  place_recipe(builder, {groups, merged});
}

void build_openrlhf_colocated(PresetBuilder& builder) {
  const auto groups = colocated_groups(builder.workflow());
  need_groups(builder, groups.size(), "deepspeed_chat");
  place_recipe(builder, {groups});
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
