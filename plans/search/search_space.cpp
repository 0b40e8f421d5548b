#include "plans/search/search_space.hpp"

#include "plans/memory/memory_model.hpp"
#include "plans/memory/micro_batches.hpp"
#include "plans/memory/response_room.hpp"
#include "plans/memory/server_memory.hpp"
#include "plans/search/plan_point.hpp"
#include "plans/weights/device_order.hpp"
#include "plans/workflow/second_roles.hpp"
#include "plans/workflow/served_calls.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace troupe::plans {

namespace {

bool same_layout(const Strategy& a, const Strategy& b) {
  return a.dp == b.dp && a.pp == b.pp && a.tp == b.tp && a.ep == b.ep
         && a.cp == b.cp && (a.zero == Zero::z3) == (b.zero == Zero::z3);
}

} // namespace

SearchSpace::SearchSpace(const PlanProblem& problem, const CostModel& costs,
                         SpaceLimits limits)
  : problem_(problem),
    costs_(costs),
    limits_(limits) {
  if (is_mixed())
    tell_nodes_apart();
  for (const auto& call : problem.workflow.calls)
    if (call.kind != CallKind::function)
      calls_.push_back({.call = &call, .trains = call.kind == CallKind::train});
  for (auto& call : calls_) {
    const auto& role = problem.workflow.role(call.call->role);
    call.home = trainer_of(role.name);
    if (role.ema)
      call.tracked = trainer_of(role.ema->role);
  }
  for (const auto& [role, shape] : problem.shapes)
    for (const auto& [other, other_shape] : problem.shapes)
      if (shape == other_shape && problem.dtype(role) == problem.dtype(other)
          && problem.planes(role) == problem.planes(other)) {
        alike_[role] = other;
        break; // the first of equal shape
      }
  is_tight_ = fills_memory();
  for (auto& call : calls_) {
    add_options(call);
    prune(call);
    counts_.kept += call.options.size();
  }
}

std::int32_t SearchSpace::trainer_of(const std::string& role) const {
  for (std::size_t k = 0; k < calls_.size(); ++k)
    if (calls_[k].trains && calls_[k].call->role == role)
      return static_cast<std::int32_t>(k);
  return -1;
}

/// Returns whether the planes of all roles, cut over all devices, take more
/// than half of the memory.
bool SearchSpace::fills_memory() {
  std::uint64_t all = 0;
  for (const auto& role : problem_.workflow.roles) {
    const auto& planes = stage_of(role.name, {});
    all += planes.weights;
    if (role.trained)
      all += planes.gradients + planes.optimizer;
  }
  return all / num_devices() > memory_bytes(kinds_at(0, num_devices())) / 2;
}

double SearchSpace::num_cores() const {
  const auto& cluster = problem_.cluster;
  return cluster.nodes
         * SharedCores(problem_.hardware, cluster)
             .cores_of(cluster.devices_per_node);
}

/// Returns powers of two and the whole inside a node; then runs of whole nodes:
/// powers of two, three times those, what these leave of the cluster, and the
/// runs of nodes of one kind.
std::vector<std::uint32_t> SearchSpace::mesh_sizes() const {
  const auto node = problem_.cluster.devices_per_node;
  const auto nodes = problem_.cluster.nodes;
  std::set<std::uint32_t> sizes = {node};
  for (std::uint32_t size = 1; size < node; size *= 2) {
    sizes.insert(size);
    sizes.insert(node - size);
  }
  for (std::uint32_t runs = 1; runs <= nodes; ++runs) {
    const auto is_nice = [](std::uint32_t number) {
      while (number % 2 == 0 && number > 0)
        number /= 2;
      return number == 1 || number == 3;
    };
    if (nodes <= 8 || runs == nodes || is_nice(runs) || is_nice(nodes - runs))
      sizes.insert(runs * node);
  }
  auto starts = kind_starts();
  starts.push_back(num_devices());
  for (std::size_t i = 1; i < starts.size(); ++i)
    sizes.insert(std::max(node, starts[i] - starts[i - 1]));
  return {sizes.begin(), sizes.end()};
}

void SearchSpace::add_options(SpaceCall& call) {
  for (const auto size : mesh_sizes())
    for (const auto kinds : kind_sets(size))
      add_strategies(call, size, kinds);
  for (const auto& plan : limits_.also)
    add_placement(call, plan);
}

/// Adds the placement of a call in `plan`, unless its mesh is not a run of
/// devices or begins elsewhere than meshes of the space do.
void SearchSpace::add_placement(SpaceCall& call, const ExecutionPlan& plan) {
  const auto option = internal::option_of(*this, call, plan);
  if (!option || align(0, *option) + option->num_devices > num_devices()
      || !allows(*call.call, option->strategy))
    return;
  add_option(call, *option, stage_of(call.call->role, option->strategy));
}

/// Returns the memory of the fullest stage. dp matters only if it cuts
/// something or has experts dealt to it.
const StageBytes& SearchSpace::stage_of(const std::string& role,
                                        Strategy strategy) {
  const auto& alike = alike_.at(role);
  strategy.cp = 1; // cuts no weights
  if (strategy.zero == Zero::none)
    strategy.dp = strategy.expert_group_dp();
  const auto [found, added] = stages_.try_emplace(std::pair(alike, strategy));
  const auto& held
    = held_.try_emplace(alike, problem_.shapes.at(alike)).first->second;
  if (added)
    for (const auto& stage :
         stage_bytes(held, strategy, problem_.planes(alike))) {
      auto& largest = found->second;
      largest.weights = std::max(largest.weights, stage.weights);
      largest.gradients = std::max(largest.gradients, stage.gradients);
      largest.optimizer = std::max(largest.optimizer, stage.optimizer);
      largest.resident = std::max(largest.resident, stage.resident);
    }
  return found->second;
}

void SearchSpace::add_batchings(SpaceCall& call, CallOption option,
                                const StageBytes& stage, int most) {
  const auto kind = call.call->kind;
  // The default rule, and the least memory where memory may matter.
  std::set<int> counts = {0};
  const bool may_cut = kind != CallKind::generate;
  const auto& role = call.call->role;
  const auto place = placement(option, 0);
  const auto memory = memory_bytes(option.kinds);
  const auto sizes = sizes_of(*call.call, problem_.sizes);
  const auto active = active_bytes(kind, problem_.shapes.at(role),
                                   problem_.dtype(role), place, sizes);
  const auto least = static_cast<int>(
    micro_batches_of(kind, place, sizes, problem_.lengths.sequence_mean())
      .count);
  const auto held = kind == CallKind::train
                      ? stage.weights + stage.gradients + stage.optimizer
                      : stage.weights;
  const bool is_tight = active > memory / 10 || held + active > memory;
  if (may_cut && most > least && is_tight)
    counts.insert({std::min(most, 4 * least), most});
  if (may_cut && option.strategy.pp > 1) // smaller bubbles
    counts.insert(std::clamp(4 * least, 1, most));
  const auto offloads = may_leave(call, stage, memory);
  for (const auto count : counts) {
    option.micro_batches = count;
    for (const auto offload : offloads) {
      option.offload = offload;
      add_option(call, option, stage);
    }
  }
}

/// Returns the planes that may be in host memory between the calls of a
/// replica: a choice only where memory may matter, as the reload takes time.
/// For a trained role this concerns home, and its training decides; replicas
/// that a move refreshes are dropped instead (residency.hpp).
std::vector<RoleMemory> SearchSpace::may_leave(const SpaceCall& call,
                                               const StageBytes& stage,
                                               std::uint64_t memory) const {
  if (call.reads_home() || is_second_role(problem_.workflow, call.call->role))
    return {{}};
  const auto much = memory / 4;
  const bool weights = is_tight_ || stage.weights > much;
  // where all roles share tight memory, a sixteenth is room for responses
  const bool moments
    = call.trains && stage.optimizer > (is_tight_ ? memory / 16 : much);
  std::vector<RoleMemory> all = {{}};
  if (weights)
    all.push_back({.offload_weights = true});
  if (moments)
    all.push_back({.offload_optimizer = true});
  if (weights && moments)
    all.push_back({.offload_weights = true, .offload_optimizer = true});
  return all;
}

void SearchSpace::add_option(SpaceCall& call, CallOption option,
                             const StageBytes& stage) {
  if (call.call->kind != CallKind::generate || !problem_.sizes.cache_adapts
      || is_served(*call.call, problem_.sizes))
    return add_with_responses(call, option, stage);
  const auto place = placement(option, 0);
  const ResponseCall takes{.shape = problem_.shapes.at(call.call->role),
                           .dtype = problem_.dtype(call.call->role),
                           .placement = place,
                           .sizes = problem_.sizes,
                           .second = second_of(*call.call)};
  for (const auto responses : response_steps(takes.most())) {
    option.responses = responses;
    add_with_responses(call, option, stage);
  }
}

void SearchSpace::add_with_responses(SpaceCall& call, CallOption option,
                                     const StageBytes& stage) {
  const auto kind = call.call->kind;
  const auto position = align(0, option);
  const auto place = placement(option, position);
  const auto& role = call.call->role;
  const auto sizes = sizes_of(*call.call, problem_.sizes);
  option.active_bytes = active_bytes(kind, problem_.shapes.at(role),
                                     problem_.dtype(role), place, sizes)
                        + second_of(*call.call).active_bytes(place, sizes);
  const bool leaves = call.reads_home() || option.offload.offload_weights;
  option.static_bytes = leaves ? stage.resident : stage.weights;
  option.weight_bytes = leaves ? stage.weights - stage.resident : 0;
  option.around.server_bytes = server_device_bytes(
    *call.call, problem_.shapes.at(role), problem_.dtype(role), option.strategy,
    problem_.sizes);
  for (const auto& second : call.call->by.with)
    option.static_bytes += stage_of(second, option.strategy).weights;
  if (call.trains) {
    option.static_bytes += stage.gradients;
    (option.offload.offload_optimizer ? option.weight_bytes
                                      : option.static_bytes)
      += stage.optimizer;
  }
  if (call.tracked >= 0)
    option.weight_bytes
      += std::min(stage.weights, problem_.sizes.move_staging_bytes);
  const auto at = tightest_device(position, option.num_devices);
  const auto bytes = option.static_bytes + option.around.server_bytes
                     + option.weight_bytes + option.active_bytes
                     + missing_bytes(at);
  if (bytes < call.smallest_bytes) {
    call.smallest_bytes = bytes;
    call.smallest_at = at;
  }
  if (bytes > memory_bytes()) {
    ++counts_.memory;
    return;
  }
  option.seconds = costs_.call_s(*call.call, place);
  if (option.chunks > 1)
    option.later_s = costs_.later_chunk_s(*call.call, place);
  if (has_server_update(problem_.workflow, *call.call))
    option.around.update_s = costs_.update_s(*call.call, place);
  option.around.weights_s
    = costs_.planes_s(role, place, {.offload_weights = true});
  if (call.trains)
    option.around.moments_s
      = costs_.planes_s(role, place, {.offload_optimizer = true});
  // calls that only read planes need not write them back to host memory
  option.device_s
    = option.total_s() + (call.trains ? 2 : 1) * option.offload_s();
  option.use = costs_.use_of(*call.call, place);
  option.cores = SharedCores(problem_.hardware, problem_.cluster)
                   .at_work(place.devices, option.use);
  call.options.push_back(option);
}

bool SearchSpace::shares(const CallOption& option, std::uint32_t position,
                         const CallOption& home, std::uint32_t home_position) {
  return position == home_position && option.num_devices == home.num_devices
         && same_layout(option.strategy, home.strategy);
}

/// Replaces positions by the first ones that have the same links.
void SearchSpace::move_left(const CallOption& mine, std::uint32_t& position,
                            const CallOption& home,
                            std::uint32_t& home_position) const {
  const auto node = problem_.cluster.devices_per_node;
  const auto end = position + mine.num_devices;
  const auto home_end = home_position + home.num_devices;
  if (position / node > (home_end - 1) / node
      || home_position / node > (end - 1) / node) {
    // no node in common: positions do not matter
    home_position = 0;
    position = (home.num_devices + node - 1) / node * node;
  } else { // shift both left by whole nodes
    const auto left = std::min(position, home_position) / node * node;
    position -= left;
    home_position -= left;
  }
}

} // namespace troupe::plans
