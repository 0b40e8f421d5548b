#include "plans/search_space.hpp"

#include "plans/answer_room.hpp"
#include "plans/device_order.hpp"
#include "plans/memory_model.hpp"
#include "plans/micro_batches.hpp"
#include "plans/replica_life.hpp"
#include "plans/strategy_rules.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace troupe::plans {

namespace {

/// Chunks of a call start later where they wait for each other, so they are no
/// better than the whole of it. Weights that leave come for other calls too.
bool is_as_good(const CallOption& a, const CallOption& b) {
  return (a.chunks == 1 || a.chunks == b.chunks)
         && (!a.offload.offload_weights || b.offload.offload_weights)
         && a.num_devices <= b.num_devices && a.total_s() <= b.total_s()
         && a.seconds <= b.seconds && a.device_s <= b.device_s
         && a.static_bytes <= b.static_bytes
         && a.weight_bytes + a.active_bytes <= b.weight_bytes + b.active_bytes;
}

bool same_layout(const Strategy& a, const Strategy& b) {
  return a.dp == b.dp && a.pp == b.pp && a.tp == b.tp
         && (a.zero == Zero::z3) == (b.zero == Zero::z3);
}

} // namespace

SearchSpace::SearchSpace(const PlanProblem& problem, const CostModel& costs,
                         SpaceLimits limits)
  : problem_(problem),
    costs_(costs),
    limits_(limits) {
  for (const auto& call : problem.workflow.calls)
    if (call.kind != CallKind::function)
      calls_.push_back({.call = &call, .trains = call.kind == CallKind::train});
  for (auto& call : calls_) {
    const auto& role = problem.workflow.role(call.call->role);
    call.home = trainer_of(role.name);
    if (role.follows)
      call.leader = trainer_of(role.follows->role);
  }
  for (const auto& [role, shape] : problem.shapes)
    for (const auto& [other, other_shape] : problem.shapes)
      if (shape == other_shape && problem.dtype(role) == problem.dtype(other)) {
        alike_[role] = other;
        break; // the first of those that are alike
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

/// Whether planes of all roles, cut over all devices, take half of each.
bool SearchSpace::fills_memory() {
  std::uint64_t all = 0;
  for (const auto& role : problem_.workflow.roles) {
    const auto& planes = stage_of(role.name, {});
    all += planes.weights;
    if (role.trained)
      all += planes.gradients + planes.optimizer;
  }
  return all / num_devices() > memory_bytes() / 2;
}

double SearchSpace::num_cores() const {
  const auto& cluster = problem_.cluster;
  return cluster.nodes
         * SharedCores(problem_.hardware, cluster)
             .cores_of(cluster.devices_per_node);
}

std::uint64_t SearchSpace::memory_bytes() const {
  const auto bytes = problem_.device_memory_bytes();
  return bytes > 0 ? bytes : std::numeric_limits<std::uint64_t>::max();
}

/// Powers of two and the whole inside a node; then runs of whole nodes: powers
/// of two, three times those, and what they leave of the cluster.
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
  return {sizes.begin(), sizes.end()};
}

void SearchSpace::add_options(SpaceCall& call) {
  for (const auto size : mesh_sizes())
    add_strategies(call, size);
  for (const auto& plan : limits_.also)
    add_placement(call, plan);
}

/// Meshes that are not a run of devices are left out.
void SearchSpace::add_placement(SpaceCall& call, const ExecutionPlan& plan) {
  const auto found = plan.calls.find(call.call->name);
  if (found == plan.calls.end() || found->second.devices.empty())
    return;
  const auto& place = found->second;
  const auto count = static_cast<std::uint32_t>(place.devices.size());
  if (place.devices.back().value - place.devices.front().value + 1 != count)
    return;
  CallOption option{.num_devices = count,
                    .strategy = place.strategy,
                    .micro_batches = place.micro_batches,
                    .chunks = place.chunks};
  if (place.micro_batch_tokens > 0 && call.call->kind != CallKind::generate)
    option.micro_batches = static_cast<int>(
      micro_batches_of(call.call->kind, place, problem_.sizes,
                       problem_.lengths.sequence_mean())
        .count);
  if (const auto role = plan.roles.find(call.call->role);
      role != plan.roles.end() && !call.reads_home())
    option.offload = used_by(*call.call, role->second);
  add_option(call, option, stage_of(call.call->role, option.strategy));
}

/// Memory of the fullest stage. Unless dp cuts something it does not matter.
const StageBytes& SearchSpace::stage_of(const std::string& role,
                                        Strategy strategy) {
  const auto& alike = alike_.at(role);
  if (strategy.zero == Zero::none)
    strategy.dp = 1;
  const auto [found, added] = stages_.try_emplace(std::pair(alike, strategy));
  if (added)
    for (const auto& stage :
         stage_bytes(problem_.shapes.at(alike), strategy,
                     stored_dtype(problem_.sizes, problem_.dtype(alike)))) {
      auto& largest = found->second;
      largest.weights = std::max(largest.weights, stage.weights);
      largest.gradients = std::max(largest.gradients, stage.gradients);
      largest.optimizer = std::max(largest.optimizer, stage.optimizer);
      largest.windows = std::max(largest.windows, stage.windows);
    }
  return found->second;
}

void SearchSpace::add_strategies(SpaceCall& call, std::uint32_t num_devices) {
  const auto& shape = problem_.shapes.at(call.call->role);
  const auto node = problem_.cluster.devices_per_node;
  const auto in_node = std::min(node, num_devices);
  for (std::uint32_t tp = 1; tp <= in_node; ++tp)
    for (std::uint32_t pp = 1; pp * tp <= num_devices; ++pp) {
      if (num_devices % (tp * pp) != 0 || in_node % tp != 0)
        continue;
      Strategy strategy{.dp = num_devices / tp / pp, .pp = pp, .tp = tp};
      if (!why_illegal(strategy, shape).empty()) {
        ++counts_.illegal;
        continue;
      }
      add_variants(call, {.num_devices = num_devices, .strategy = strategy});
    }
}

/// Shardings, micro-batchings, chunks and offloads that may pay.
void SearchSpace::add_variants(SpaceCall& call, CallOption option) {
  const auto kind = call.call->kind;
  const auto& sizes = problem_.sizes;
  auto samples = sizes.samples_per_step;
  if (kind == CallKind::train)
    samples /= std::max(1u, sizes.mini_batches);
  if (option.strategy.dp > samples) {
    ++counts_.illegal;
    return;
  }
  std::vector<Zero> zeros = {Zero::none};
  if (kind == CallKind::train && option.strategy.dp > 1)
    zeros = {Zero::z1, Zero::z3, Zero::none};
  std::vector<int> chunk_counts = {1};
  if (limits_.chunks && kind != CallKind::train)
    chunk_counts = {1, 2, 4};
  const auto a_rank = std::max(1u, samples / option.strategy.dp);
  const auto stage_with = [&](Zero zero) -> const StageBytes& {
    option.strategy.zero = zero;
    return stage_of(call.call->role, option.strategy);
  };
  if (kind == CallKind::inference && option.strategy.dp > 1
      && stage_with(Zero::none).weights > memory_bytes() / 4)
    zeros.push_back(Zero::z3); // where weights are much of a device
  for (const auto zero : zeros) {
    const auto& stage = stage_with(zero);
    for (const auto chunks : chunk_counts) {
      option.chunks = chunks;
      add_batchings(call, option, stage, static_cast<int>(a_rank));
    }
  }
}

void SearchSpace::add_batchings(SpaceCall& call, CallOption option,
                                const StageBytes& stage, int most) {
  const auto kind = call.call->kind;
  // The default rule, and the least memory where memory may matter.
  std::set<int> counts = {0};
  const bool may_cut = kind != CallKind::generate;
  const auto& role = call.call->role;
  const auto active
    = active_bytes(kind, problem_.shapes.at(role), problem_.dtype(role),
                   placement(option, 0), problem_.sizes);
  const auto least = static_cast<int>(
    micro_batches_of(kind, placement(option, 0), problem_.sizes,
                     problem_.lengths.sequence_mean())
      .count);
  const auto held = kind == CallKind::train
                      ? stage.weights + stage.gradients + stage.optimizer
                      : stage.weights;
  const bool is_tight
    = active > memory_bytes() / 10 || held + active > memory_bytes();
  if (may_cut && most > least && is_tight)
    counts.insert({std::min(most, 4 * least), most});
  if (may_cut && option.strategy.pp > 1) // smaller bubbles
    counts.insert(std::clamp(4 * least, 1, most));
  const auto offloads = may_leave(call, stage);
  for (const auto count : counts) {
    option.micro_batches = count;
    for (const auto offload : offloads) {
      option.offload = offload;
      add_option(call, option, stage);
    }
  }
}

/// What may be in host memory between the calls of a replica: a choice where
/// memory may matter, as its reload takes time. Of a role that is trained it is
/// one of home, which its training names; what a move brings is dropped
/// (replica_life.hpp).
std::vector<RoleMemory> SearchSpace::may_leave(const SpaceCall& call,
                                               const StageBytes& stage) const {
  if (call.reads_home())
    return {{}};
  const auto much = memory_bytes() / 4;
  const bool weights = is_tight_ || stage.weights > much;
  const bool moments = call.trains && stage.optimizer > much;
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
  if (call.call->kind != CallKind::generate || !problem_.sizes.cache_adapts)
    return add_with_answers(call, option, stage);
  const auto place = placement(option, 0);
  const AnswerCall takes{.shape = problem_.shapes.at(call.call->role),
                         .dtype = problem_.dtype(call.call->role),
                         .placement = place,
                         .sizes = problem_.sizes};
  for (const auto answers : answer_steps(takes.most())) {
    option.answers = answers;
    add_with_answers(call, option, stage);
  }
}

void SearchSpace::add_with_answers(SpaceCall& call, CallOption option,
                                   const StageBytes& stage) {
  const auto kind = call.call->kind;
  const auto place = placement(option, 0);
  const auto& role = call.call->role;
  option.seconds = costs_.call_s(*call.call, place);
  option.later_s = costs_.later_chunk_s(*call.call, place);
  option.weights_s = costs_.planes_s(role, place, {.offload_weights = true});
  option.moments_s
    = call.trains ? costs_.planes_s(role, place, {.offload_optimizer = true})
                  : 0;
  // what only read them leaves them as they are in host memory
  option.device_s
    = option.total_s() + (call.trains ? 2 : 1) * option.offload_s();
  option.use = costs_.use_of(*call.call, place);
  option.cores = SharedCores(problem_.hardware, problem_.cluster)
                   .at_work(place.devices, option.use);
  option.active_bytes
    = active_bytes(kind, problem_.shapes.at(role), problem_.dtype(role), place,
                   problem_.sizes);
  const bool leaves = call.reads_home() || option.offload.offload_weights;
  option.static_bytes = leaves ? stage.windows : stage.weights;
  option.weight_bytes = leaves ? stage.weights - stage.windows : 0;
  if (call.trains) {
    option.static_bytes += stage.gradients;
    (option.offload.offload_optimizer ? option.weight_bytes
                                      : option.static_bytes)
      += stage.optimizer;
  }
  if (call.leader >= 0)
    option.weight_bytes
      += std::min(stage.weights, problem_.sizes.move_staging_bytes);
  const auto bytes
    = option.static_bytes + option.weight_bytes + option.active_bytes;
  call.smallest_bytes = std::min(call.smallest_bytes, bytes);
  if (bytes > memory_bytes())
    ++counts_.memory;
  else
    call.options.push_back(option);
}

/// Options of a role that moves are compared within their layout only: another
/// layout has other moves.
void SearchSpace::prune(SpaceCall& call) {
  std::ranges::stable_sort(call.options, {}, [](const CallOption& option) {
    return std::tuple{option.total_s(), option.num_devices, option.static_bytes,
                      option.active_bytes, option.strategy};
  });
  const bool moves = call.home >= 0 || call.leader >= 0;
  std::vector<CallOption> kept;
  for (const auto& option : call.options) {
    const bool beaten = std::ranges::any_of(kept, [&](const CallOption& other) {
      return is_as_good(other, option)
             && (!moves
                 || (other.num_devices == option.num_devices
                     && same_layout(other.strategy, option.strategy)));
    });
    if (beaten)
      ++counts_.dominated;
    else
      kept.push_back(option);
  }
  call.options = std::move(kept);
  for (auto& option : call.options) {
    const auto first = std::ranges::find_if(call.options, [&](const auto& one) {
      return one.num_devices == option.num_devices
             && one.strategy == option.strategy;
    });
    option.mesh = static_cast<std::uint32_t>(first - call.options.begin());
  }
}

bool SearchSpace::shares(const CallOption& option, std::uint32_t position,
                         const CallOption& home, std::uint32_t home_position) {
  return position == home_position && option.num_devices == home.num_devices
         && same_layout(option.strategy, home.strategy);
}

double SearchSpace::move_s(std::size_t call, std::uint32_t option,
                           std::uint32_t position, std::uint32_t home_option,
                           std::uint32_t home_position) const {
  const auto& one = calls_[call];
  const auto& mine = one.options[option];
  const bool blends = one.leader >= 0;
  const auto& home
    = calls_[static_cast<std::size_t>(blends ? one.leader : one.home)]
        .options[home_option];
  if (!blends && shares(mine, position, home, home_position))
    return 0;
  // both as many nodes to the left: the same links
  const auto node = problem_.cluster.devices_per_node;
  const auto left = std::min(position, home_position) / node * node;
  position -= left;
  home_position -= left;
  const MoveKey key{static_cast<std::uint32_t>(call), mine.mesh, position,
                    home.mesh, home_position};
  const auto [found, added] = moves_s_.try_emplace(key, 0.0);
  const auto& follows = problem_.workflow.role(one.call->role).follows;
  if (added) {
    const auto source = placement(home, home_position);
    auto target = placement(mine, position);
    target.devices = order_devices(source, target, problem_.cluster);
    found->second = costs_.move_s(one.call->role, source, target)
                    / (follows ? follows->every : 1);
  }
  return found->second;
}

} // namespace troupe::plans
