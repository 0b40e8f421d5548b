#include "plans/cost_model.hpp"

#include "config/error.hpp"
#include "plans/micro_batches.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::plans {

namespace {

/// Passes of element-wise operations over the hidden states of a layer.
constexpr double elementwise_passes = 30;
/// Products of the head reach less of the matrix rate.
constexpr double head_efficiency = 0.8;
/// fp32 logits, written and read.
constexpr double logits_bytes_a_token = 8;
/// Of a layer's launches those of its MLP: 5 of 20.
constexpr double mlp_launch_share = 0.25;
/// Two fp32 moments: what an optimizer that is offloaded leaves the device
/// with.
constexpr double moment_bytes_a_parameter = 8;
/// Passes over a token's hidden state for each of its experts: gathered, given
/// to it, weighted, added up.
constexpr double expert_passes = 4;
bool cost_run_spans(const std::vector<Rank>& devices, std::size_t begin,
                    std::size_t count, const Cluster& cluster) {
  return cluster.node_of(devices[begin])
         != cluster.node_of(devices[begin + count - 1]);
}

} // namespace

MeshSpan span_of(const Placement& placement, const Cluster& cluster) {
  MeshSpan span;
  const auto& devices = placement.devices;
  const auto& strategy = placement.strategy;
  if (devices.empty())
    return span;
  const auto stage = std::size_t{strategy.tp} * strategy.dp;
  for (std::size_t i = 0; i < devices.size(); i += strategy.tp)
    span.tensor |= cost_run_spans(devices, i, strategy.tp, cluster);
  for (std::size_t i = 0; i < devices.size(); i += stage)
    span.data |= cost_run_spans(devices, i, stage, cluster);
  span.pipeline = cost_run_spans(devices, 0, devices.size(), cluster);
  return span;
}

double CostModel::LayerTime::forward() const {
  return std::max(compute + network, host);
}

double CostModel::Model::touched_experts(double tokens) const {
  return expert_parameters == 0 ? 0
                                : experts
                                    * (1
                                       - std::pow(1 - experts_a_token / experts,
                                                  std::max(1.0, tokens)));
}

double CostModel::Model::used_parameters() const {
  return layer_parameters - (experts - experts_a_token) * expert_parameters;
}

double CostModel::Model::head_share() const {
  const auto head = head_width * hidden;
  return head / (head + layers * used_parameters());
}

double CostModel::Model::read_parameters(double tokens) const {
  return layer_parameters
         - (experts - touched_experts(tokens)) * expert_parameters;
}

double CostModel::Model::launches(double tokens) const {
  return 1 + mlp_launch_share * std::max(0.0, touched_experts(tokens) - 1);
}

CostModel::CostModel(const PlanProblem& problem, CostEffects effects)
  : problem_(problem),
    hardware_(problem.hardware),
    cores_(problem.hardware, problem.cluster),
    effects_(effects) {
  for (const auto& [role, shape] : problem.shapes) {
    Model model;
    const auto dtype = problem.dtype(role);
    model.element_bytes = static_cast<double>(size_bytes(dtype));
    model.units = unit_bytes(shape, dtype);
    model.layers = static_cast<double>(shape.num_layers);
    model.hidden = static_cast<double>(shape.hidden_size);
    model.kv_width = static_cast<double>(shape.num_kv_heads * shape.head_dim);
    model.attention_width
      = static_cast<double>(shape.num_heads * shape.head_dim);
    model.head_width
      = shape.scalar_head ? 0 : static_cast<double>(shape.vocab_size);
    model.layer_parameters = model.units.units.at(1) / model.element_bytes;
    if (shape.num_experts > 0) {
      model.experts = static_cast<double>(shape.num_experts);
      model.experts_a_token = static_cast<double>(shape.experts_per_token);
      model.expert_parameters = (shape.gated_mlp ? 3.0 : 2.0) * model.hidden
                                * static_cast<double>(shape.intermediate_size);
    }
    model.num_parameters = num_parameters(shape);
    model.parameters = static_cast<double>(model.num_parameters);
    models_.emplace(role, std::move(model));
  }
}

CostModel::Job CostModel::make_job(const Call& call,
                                   const Placement& placement) const {
  const auto found = models_.find(call.role);
  TROUPE_CHECK(found != models_.end(), "role without a shape: " + call.role);
  const auto batches = micro_batches_of(call.kind, placement, problem_.sizes,
                                        problem_.lengths.sequence_mean());
  const auto& strategy = placement.strategy;
  const StageLayers layers(static_cast<std::uint32_t>(found->second.layers),
                           strategy.pp, costs_of(found->second.units));
  auto samples = batches.samples;
  double rounds = 1;
  if (call.kind == CallKind::generate && has_limited_places(problem_.sizes)) {
    const auto all = samples * batches.count;
    const auto places = static_cast<double>(
      answers_under_way(problem_.shapes.at(call.role),
                        problem_.dtype(call.role), placement, problem_.sizes));
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
          .samples = samples,
          .rounds = rounds};
}

double CostModel::work_s(const Call& call, const Job& job) const {
  switch (call.kind) {
  case CallKind::generate:
    return gather_s(job, 1) + first_answers_s(job) + later_answers_s(job);
  case CallKind::train:
    return train_s(job);
  default:
    return inference_s(job);
  }
}

double CostModel::call_s(const Call& call, const Placement& placement) const {
  if (call.kind == CallKind::function || placement.devices.empty())
    return 0;
  return cores_.alone(placement.devices, turns_of(call, placement))
         * (hardware_.call_s + work_s(call, make_job(call, placement)));
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
  if (call.kind != CallKind::generate || call.own_actor)
    return call_s(call, placement);
  const auto job = make_job(call, placement);
  return cores_.alone(placement.devices)
         * (steady_answers_s(job) + later_answers_s(job));
}

MoveBytes CostModel::move_bytes_of(const std::string& role,
                                   const Placement& from,
                                   const Placement& to) const {
  return plans_moves_
           ? planned_move_bytes(problem_.shapes.at(role), problem_.dtype(role),
                                from, to, problem_.cluster)
           : move_bytes(models_.find(role)->second.units, from, to,
                        problem_.cluster);
}

CostModel CostModel::with_planned_moves() const {
  auto costs = *this;
  constexpr std::uint32_t most_devices = 128;
  costs.plans_moves_ = problem_.cluster.num_devices() <= most_devices;
  return costs;
}

double CostModel::move_s(const std::string& role, const Placement& from,
                         const Placement& to) const {
  if (!effects_.moves)
    return 0;
  const auto bytes = move_bytes_of(role, from, to);
  auto seconds = move_seconds(bytes, hardware_);
  // another sharding of the same devices: no link, but a task
  if (seconds == 0 && from.strategy != to.strategy)
    seconds = hardware_.move_s;
  // Sharded parameters are gathered by all devices at once.
  auto both = from.devices;
  both.insert(both.end(), to.devices.begin(), to.devices.end());
  const auto alone = cores_.alone(both);
  if (from.strategy.zero != Zero::z3)
    return alone * seconds;
  const auto& model = models_.find(role)->second;
  const auto share = model.parameters * model.element_bytes
                     / (double(to.strategy.tp) * to.strategy.pp);
  return alone * std::max(seconds, hardware_.move_s + share / zero_Bps());
}

double CostModel::link_Bps(bool between_nodes) const {
  return between_nodes ? hardware_.inter_Bps : hardware_.intra_Bps;
}

double CostModel::link_latency_s(bool between_nodes) const {
  return between_nodes ? hardware_.inter_lat_s : hardware_.intra_lat_s;
}

/// Beside work as sums of gradients: so much less than alone.
double CostModel::zero_Bps() const {
  return hardware_.sum_Bps > 0
           ? hardware_.zero_Bps * (hardware_.sum_Bps / hardware_.intra_Bps)
           : hardware_.zero_Bps;
}

/// One all-reduce of the hidden states of `tokens` over the tensor group.
double CostModel::tensor_sum_s(const Job& job, double tokens) const {
  if (job.t <= 1)
    return 0;
  const auto bytes = 2 * (job.t - 1) / job.t * job.model.element_bytes * tokens
                     * job.model.hidden;
  return bytes / link_Bps(job.span.tensor) + link_latency_s(job.span.tensor);
}

CostModel::LayerTime CostModel::layer(const Job& job, double tokens,
                                      double attends) const {
  const auto& m = job.model;
  const auto& hw = hardware_;
  const auto width = m.hidden / job.t;
  const auto rate = hw.gemm_flops * width / (width + hw.gemm_width_half);
  const auto gemm = std::max(2 * m.used_parameters() * tokens / (job.t * rate),
                             m.element_bytes * m.read_parameters(tokens)
                               / (job.t * hw.mem_Bps));
  const auto passes = elementwise_passes + expert_passes * m.experts_a_token;
  const auto other
    = 2 * m.attention_width * attends * tokens / (job.t * hw.attn_flops)
      + passes * m.element_bytes * tokens * m.hidden / (job.t * hw.mem_Bps);
  LayerTime time{.compute = gemm + other,
                 .network = 2 * tensor_sum_s(job, tokens),
                 .host = hw.launch_layer_s * m.launches(tokens)
                         + (job.t > 1 ? hw.launch_tp_extra_s : 0.0)};
  if (effects_.dschat_engine)
    time.compute *= hw.dschat_compute;
  return time;
}

double CostModel::head_s(const Job& job, double tokens) const {
  const auto& m = job.model;
  return 2 * m.head_width * m.hidden * tokens
           / (head_efficiency * job.t * hardware_.gemm_flops)
         + logits_bytes_a_token * m.head_width * tokens
             / (job.t * hardware_.mem_Bps);
}

/// Hidden states of `tokens` to the next stage.
double CostModel::hop_s(const Job& job, double tokens) const {
  if (job.p <= 1)
    return 0;
  const auto bytes = job.model.element_bytes * tokens * job.model.hidden;
  const bool far = job.span.pipeline;
  return (far ? bytes / (job.t * hardware_.inter_Bps)
              : bytes / hardware_.intra_Bps)
         + link_latency_s(far);
}

double CostModel::slowest_s(const Job& job, double layer_s, double head) const {
  return std::max(job.other_layers * layer_s, job.last_layers * layer_s + head);
}

/// M micro-batches through p stages; the last stage has the head.
double CostModel::passes_s(const Job& job, double layer_s, double head,
                           double hop) const {
  const auto all = job.model.layers * layer_s + head + job.p * hop;
  const auto slowest = slowest_s(job, layer_s, head) + hop;
  if (!effects_.bubbles)
    return job.micro_batches * all / job.p;
  return all + (job.micro_batches - 1) * slowest;
}

/// Gathering (or scattering) a stage's sharded parameters `times` times.
double CostModel::gather_s(const Job& job, double times) const {
  if (job.placement.strategy.zero != Zero::z3 || job.d <= 1)
    return 0;
  const auto bytes = job.model.parameters * job.model.element_bytes
                     / (job.t * job.p) * (job.d - 1) / job.d;
  return times * bytes / zero_Bps();
}

double CostModel::planes_s(const std::string& role, const Placement& mesh,
                           const RoleMemory& planes) const {
  const auto& model = models_.find(role)->second;
  const auto& [dp, pp, tp, zero, sequence_parallel] = mesh.strategy;
  const auto weight_copies = zero == Zero::z3 ? 1.0 : double(dp);
  const auto moment_copies = zero == Zero::none ? double(dp) : 1.0;
  auto bytes = 0.0; // of a device for each parameter of the model
  if (planes.offload_weights)
    bytes += model.element_bytes * weight_copies;
  if (planes.offload_optimizer)
    bytes += moment_bytes_a_parameter * moment_copies;
  return cores_.alone(mesh.devices) * model.parameters * bytes
         / (double(dp) * pp * tp) / hardware_.host_Bps;
}

/// Passes of `op` over `tokens` each, if it was measured. Of a whole pass the
/// last stage has the head's share; prompts need it for their last token only.
std::optional<double> CostModel::measured_passes_s(const Job& job, ProfileOp op,
                                                   double tokens,
                                                   double hop) const {
  const auto measured = problem_.profile.seconds(
    op, job.model.num_parameters, job.placement.strategy.tp, tokens);
  if (!measured)
    return std::nullopt;
  const auto head
    = op == ProfileOp::prefill ? 0 : *measured * job.model.head_share();
  return passes_s(job, (*measured - head) / job.model.layers, head, hop);
}

double CostModel::inference_pass_s(const Job& job) const {
  const auto tokens = job.samples * problem_.lengths.sequence_mean();
  const auto hop = hop_s(job, tokens);
  if (const auto all = measured_passes_s(job, ProfileOp::forward, tokens, hop))
    return *all;
  const auto time = layer(job, tokens, problem_.lengths.attention_length());
  return passes_s(job, time.forward(), head_s(job, tokens), hop);
}

/// Prompts of a generation up to the first token.
double CostModel::inference_s(const Job& job) const {
  return inference_pass_s(job) + gather_s(job, job.micro_batches);
}

/// Sum of gradients over dp, a mini-batch, a layer at a time. Sharding (z1)
/// sends the same bytes.
double CostModel::gradients_s(const Job& job) const {
  if (job.d <= 1 || job.placement.strategy.zero == Zero::z3)
    return 0;
  const auto bytes = 2 * (job.d - 1) / job.d * job.model.element_bytes
                     * job.model.parameters / (job.t * job.p);
  const auto rate = hardware_.sum_Bps > 0 && !job.span.data
                      ? hardware_.sum_Bps
                      : link_Bps(job.span.data);
  return bytes / rate
         + std::max(job.other_layers, job.last_layers)
             * link_latency_s(job.span.data);
}

double CostModel::optimizer_s(const Job& job) const {
  const auto share = job.placement.strategy.zero == Zero::none ? 1.0 : job.d;
  const auto parameters = job.model.parameters / (job.t * job.p * share);
  const auto device
    = hardware_.optimizer_Bps > 0 ? hardware_.optimizer_Bps : hardware_.mem_Bps;
  return optimizer_bytes_a_parameter * parameters / device
         + hardware_.opt_step_s;
}

double CostModel::train_s(const Job& job) const {
  const auto& lengths = problem_.lengths;
  const auto tokens = job.samples * lengths.sequence_mean();
  const auto hop = 2 * hop_s(job, tokens);
  const auto head = 3 * head_s(job, tokens);
  double pass = 0;
  if (const auto all = measured_passes_s(job, ProfileOp::train, tokens, hop)) {
    pass = *all;
  } else {
    const auto time = layer(job, tokens, lengths.attention_length());
    const auto forwards = problem_.sizes.recompute_activations ? 2.0 : 1.0;
    const auto backward
      = std::max(2 * time.compute + time.network, 2 * time.host);
    pass = passes_s(job, forwards * time.forward() + backward, head, hop);
  }
  const auto gathers = gather_s(job, 3 * job.micro_batches);
  const auto steps
    = double(problem_.sizes.mini_batches) * problem_.sizes.epochs;
  return steps * (pass + gathers + gradients_s(job) + optimizer_s(job));
}

} // namespace troupe::plans
