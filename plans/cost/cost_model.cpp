#include "plans/cost/cost_model.hpp"

#include "config/base/error.hpp"
#include "plans/cost/least_move.hpp"
#include "plans/memory/memory_model.hpp"
#include "plans/memory/micro_batches.hpp"
#include "plans/workflow/context_share.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// Two fp32 moments per parameter: what leaves the device when the optimizer is
/// offloaded.
constexpr double moment_bytes_a_parameter = 8;

/// Share of a generation's work that each second role of its conversations
/// adds: a guess, as nothing is known of who says how much before a run has
/// measured the whole call.
constexpr double second_share = 0.5;

/// Returns the bytes of a model that a device of `to` gathers.
double bytes_gathered(double model_bytes, const Strategy& to) {
  return model_bytes / (double(to.tp) * to.pp);
}

/// Returns the share of a role's bytes that moves send between nodes: to
/// replicas of a GPU that only compute in bf16
/// (plans/weights/rounded_moves.hpp) weights go as bf16.
double sent_share(const PlanProblem& problem, const std::string& role) {
  const Role* const found = problem.workflow.find_role(role);
  const auto planes = problem.planes(role);
  const bool rounds = planes.rounded && found != nullptr && found->trained
                      && !found->ema && !problem.sizes.engine.serves
                      && !problem.shapes.at(role).lora.exists();
  return rounds ? static_cast<double>(size_bytes(*planes.rounded))
                    / static_cast<double>(size_bytes(planes.stored))
                : 1;
}

} // namespace

CostModel::CostModel(const PlanProblem& problem, CostEffects effects)
  : problem_(problem),
    hardware_(problem.hardware),
    cores_(problem.hardware, problem.cluster),
    effects_(effects) {
  for (const auto& [role, shape] : problem.shapes) {
    Model model(shape, problem.dtype(role), problem.stored(role));
    model.trained.sent_share = sent_share(problem, role);
    models_.emplace(role, std::move(model));
  }
  const auto& kinds = problem.hardware.kinds;
  if (kinds.empty())
    return;
  slowest_.resize(std::size_t{1} << kinds.size());
  for (KindSet set = 1; set < slowest_.size(); ++set)
    slowest_[set] = slowest_of(kinds, set);
}

const Hardware& CostModel::numbers(KindSet kinds) const {
  return slowest_.empty() ? hardware_ : slowest_[kinds];
}

KindSet CostModel::kinds_of(const std::vector<Rank>& devices) const {
  return problem_.hardware.kinds_of(devices, problem_.cluster);
}

CostModel::Job CostModel::make_job(const Call& call,
                                   const Placement& placement) const {
  const auto found = models_.find(call.role);
  TROUPE_CHECK(found != models_.end(), "role without a shape: " + call.role);
  const auto sizes = sizes_of(call, problem_.sizes);
  const auto batches = micro_batches_of(call.kind, placement, sizes,
                                        problem_.lengths.sequence_mean());
  const auto& strategy = placement.strategy;
  const StageLayers layers(static_cast<std::uint32_t>(found->second.layers),
                           strategy.pp, found->second.units.costs);
  auto samples = batches.samples;
  double rounds = 1;
  if (call.kind == CallKind::generate && has_limited_places(sizes, placement)) {
    const auto all = samples * batches.count;
    const auto places = responses_at_once(call, placement);
    rounds = std::max(1.0, all / places);
    samples /= rounds;
  }
  return {.model = found->second,
          .placement = placement,
          .span = span_of(placement, problem_.cluster),
          .d = double(strategy.dp),
          .p = double(strategy.pp),
          .t = double(strategy.tp),
          .last_layers = double(layers.last()),
          .other_layers = double(layers.most_before()),
          .micro_batches = double(batches.count),
          .samples = samples / ranks_of_a_sample(call.kind, strategy),
          .rounds = rounds,
          .kinds = kinds_of(placement.devices)};
}

double CostModel::work_s(const Call& call, const Job& job) const {
  switch (call.kind) {
  case CallKind::generate: {
    auto seconds = gather_s(job, 1) + rollout_s(job);
    for (auto second = call; const auto& role : call.by.with) {
      second.role = role;
      const auto beside = make_job(second, job.placement);
      seconds += second_share * (gather_s(beside, 1) + rollout_s(beside));
    }
    return seconds;
  }
  case CallKind::train:
    return train_s(job);
  default:
    return inference_s(job);
  }
}

double CostModel::call_s(const Call& call, const Placement& placement) const {
  const auto& measured = problem_.measured;
  if (call.kind == CallKind::function)
    return measured.function_seconds(call.name) / placement.chunks;
  if (placement.devices.empty())
    return 0;
  return measured.factor_of(call.name)
         * cores_.alone(placement.devices, turns_of(call, placement))
         * (numbers(kinds_of(placement.devices)).call_s + master_s(placement)
            + work_s(call, make_job(call, placement)));
}

double CostModel::master_s(const Placement& placement) const {
  return hardware_.call_device_s * double(placement.devices.size());
}

StageTurns CostModel::turns_of(const Call& call,
                               const Placement& placement) const {
  const auto stages = placement.strategy.pp;
  if (stages <= 1 || !effects_.bubbles || call.kind == CallKind::generate)
    return {};
  return {.stages = double(stages),
          .micro_batches = make_job(call, placement).micro_batches};
}

double CostModel::use_of(const Call& call, const Placement& placement) const {
  return turns_of(call, placement).use();
}

double CostModel::later_chunk_s(const Call& call,
                                const Placement& placement) const {
  if (call.kind != CallKind::generate || call.by.user_actor)
    return call_s(call, placement);
  const auto job = make_job(call, placement);
  return problem_.measured.factor_of(call.name)
         * cores_.alone(placement.devices)
         * (steady_responses_s(job)
            + (job.rounds > 1 ? (job.rounds - 1) * steady_responses_s(job)
                              : 0));
}

/// Planned moves, cached because plans of one search share most of them.
struct CostModel::PlannedMove {
  std::string role;
  Placement from, to;
  MoveBytes bytes;
};

MoveBytes CostModel::move_bytes_of(const std::string& role,
                                   const Placement& from,
                                   const Placement& to) const {
  const auto& shape = problem_.shapes.at(role);
  const auto planned = [&](const ModelShape& model) {
    return planned_move_bytes(model, problem_.stored(role).weights, from, to,
                              problem_.cluster);
  };
  // cells in closed form are cut like tensors, not by experts, whose moves are
  // planned for few of them
  const bool has_cells = from.strategy.ep == 1 && to.strategy.ep == 1;
  if (!planned_moves_)
    return has_cells
             ? move_bytes(models_.find(role)->second.trained.moved, from, to,
                          problem_.cluster)
             : planned(with_joined_experts(shape, from.strategy, to.strategy));
  for (const auto& move : *planned_moves_)
    if (move.role == role && move.from == from && move.to == to)
      return move.bytes;
  planned_moves_->push_back({role, from, to, planned(shape)});
  return planned_moves_->back().bytes;
}

CostModel CostModel::with_planned_moves() const {
  auto costs = *this;
  constexpr std::uint32_t most_devices = 128;
  if (problem_.cluster.num_devices() <= most_devices)
    costs.planned_moves_ = std::make_shared<std::vector<PlannedMove>>();
  return costs;
}

CostModel CostModel::for_problem(const PlanProblem& problem) const {
  return CostModel(problem, effects_);
}

double CostModel::move_s(const std::string& role, const Placement& from,
                         const Placement& to) const {
  if (!effects_.moves)
    return 0;
  const auto bytes = move_bytes_of(role, from, to);
  auto both = from.devices;
  both.insert(both.end(), to.devices.begin(), to.devices.end());
  const auto& hw = numbers(kinds_of(both));
  const auto& model = models_.find(role)->second;
  auto seconds = move_seconds(bytes, hw, model.trained.sent_share);
  // a different sharding of the same devices uses no link, but is still a task
  if (seconds == 0 && from.strategy != to.strategy)
    seconds = hw.move_s;
  // sharded parameters are gathered by all devices at once
  const auto alone = problem_.measured.move_factor * cores_.alone(both);
  if (from.strategy.zero != Zero::z3)
    return alone * seconds;
  const auto gathered
    = bytes_gathered(model.parameters * model.bytes.weight, to.strategy);
  return alone
         * std::max(
           seconds,
           hw.move_s
             + gathered / gather_Bps(hw, span_of(from, problem_.cluster).data));
}

double CostModel::least_move_s(const std::string& role, const Strategy& from,
                               const Strategy& to) const {
  if (!effects_.moves || cores_.any() || !slowest_.empty())
    return 0; // the devices decide
  if (from.ep > 1 || to.ep > 1)
    return 0; // parts of experts differ from those of tensors
  const auto& model = models_.find(role)->second;
  const auto seconds = least_move_seconds(model.trained.moved, from, to,
                                          problem_.cluster.devices_per_node,
                                          hardware_, model.trained.sent_share);
  const auto gather_s
    = from.zero == Zero::z3
        ? hardware_.move_s
            + bytes_gathered(model.parameters * model.bytes.weight, to)
                / std::max(gather_Bps(hardware_, false),
                           gather_Bps(hardware_, true))
        : 0;
  return problem_.measured.move_factor * std::max(seconds, gather_s);
}

double CostModel::planes_s(const std::string& role, const Placement& mesh,
                           const RoleMemory& planes) const {
  const auto& model = models_.find(role)->second;
  const auto& strategy = mesh.strategy;
  const double dp = strategy.dp;
  const auto num_weights = strategy.zero == Zero::z3 ? 1.0 : dp;
  const auto num_moments = strategy.zero == Zero::none ? dp : 1.0;
  auto bytes = 0.0; // per device and parameter of the model
  const auto stored = problem_.planes(role);
  if (planes.offload_weights)
    bytes += (stored.has_no_masters
                  && !needs_masters(problem_.shapes.at(role), strategy)
                ? size_bytes(*stored.rounded)
                : model.bytes.weight)
             * num_weights;
  if (planes.offload_optimizer)
    bytes += moment_bytes_a_parameter * num_moments;
  return cores_.alone(mesh.devices) * model.trained.parameters * bytes
         / strategy.num_devices() / numbers(kinds_of(mesh.devices)).host_Bps;
}

double CostModel::inference_pass_s(const Job& job) const {
  const auto tokens = job.samples * problem_.lengths.sequence_mean();
  const auto hop = hop_s(job, tokens);
  if (const auto all = measured_passes_s(job, ProfileOp::forward, tokens, hop))
    return *all;
  const auto time
    = layer(job, PassKind::score, tokens, problem_.lengths.attention_length());
  return passes_s(job, time.forward(), head_s(job, PassKind::score, tokens, 1),
                  hop);
}

double CostModel::inference_s(const Job& job) const {
  return inference_pass_s(job) + gather_s(job, job.micro_batches);
}

/// Gradients are summed over dp once per mini-batch, layer by layer. Sharding
/// (z1) sends the same bytes: half of them before the optimizer's step, and
/// then, on GPUs with the rate of a gather, the weights that it changed: as
/// kernels read them, but as stored after the last of `steps` steps.
double CostModel::gradients_s(const Job& job, double steps) const {
  if (job.d <= 1 || job.placement.strategy.zero == Zero::z3)
    return 0;
  const auto bytes = 2 * (job.d - 1) / job.d * job.model.bytes.weight
                     * job.model.trained.parameters / (job.t * job.p);
  const auto& hw = numbers(job.kinds);
  const auto rate = hw.sum_Bps > 0 && !job.span.data
                      ? hw.sum_Bps
                      : link_Bps(job, job.span.data);
  const auto latency_s = std::max(job.other_layers, job.last_layers)
                         * link_latency_s(job, job.span.data);
  const auto& number = job.model.bytes;
  const auto gathered
    = ((steps - 1) * number.gathered / number.weight + 1) / steps;
  if (is_counted() && job.placement.strategy.zero == Zero::z1)
    return bytes / 2 / rate
           + gathered * bytes / 2 / gather_Bps(hw, job.span.data)
           + 2 * latency_s;
  return bytes / rate + latency_s;
}

double CostModel::optimizer_s(const Job& job) const {
  const auto share = job.placement.strategy.zero == Zero::none ? 1.0 : job.d;
  const auto parameters
    = job.model.trained.parameters / (job.t * job.p * share);
  const auto& hw = numbers(job.kinds);
  const auto device = hw.optimizer_Bps > 0 ? hw.optimizer_Bps : hw.mem_Bps;
  return optimizer_bytes_a_parameter * parameters / device + hw.opt_step_s;
}

double CostModel::train_s(const Job& job) const {
  const auto& lengths = problem_.lengths;
  const auto tokens = job.samples * lengths.sequence_mean();
  const auto hop = 2 * hop_s(job, tokens);
  const auto products
    = 1 + job.model.trained.backward; // of a pass without recompute
  const auto head = head_s(job, PassKind::train, tokens, products);
  double pass = 0;
  if (const auto all = measured_passes_s(job, ProfileOp::train, tokens, hop)) {
    pass = *all * (products / 3); // all weights were trained
  } else {
    const auto time
      = layer(job, PassKind::train, tokens, lengths.attention_length());
    const auto forwards = problem_.sizes.recompute_activations ? 2.0 : 1.0;
    pass
      = passes_s(job, forwards * time.forward() + time.backward(), head, hop);
  }
  const auto& number = job.model.bytes;
  const auto scatter = number.weight / number.gathered; // of gradients
  const auto sharded = gather_s(job, (2 + scatter) * job.micro_batches);
  const auto steps
    = double(problem_.sizes.mini_batches) * problem_.sizes.epochs;
  return steps * (pass + sharded + gradients_s(job, steps) + optimizer_s(job));
}

} // namespace troupe::plans
