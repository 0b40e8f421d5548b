// CostModel's seconds of passes: what a layer and the head take, what is sent
// between devices, and micro-batches through the stages of a pipeline.
#include "plans/cost/cost_model.hpp"

#include <algorithm>

namespace troupe::plans {

using internal::head_efficiency;

namespace {

/// Element-wise passes over the hidden states of a layer.
constexpr double elementwise_passes = 30;
/// fp32 logits, written and read.
constexpr double logits_bytes_a_token = 8;
/// Keys and values backward: once more, and their gradients.
constexpr double backward_gathers = 2;
/// Passes over a token's hidden state for each of its experts: gather, input,
/// weighting, sum.
constexpr double expert_passes = 4;

} // namespace

double CostModel::LayerTime::forward() const {
  return std::max(compute + network + gather, host);
}

double CostModel::LayerTime::backward() const {
  return std::max(backward_compute + network + backward_gathers * gather,
                  backward_host);
}

/// Returns the factor of another system's passes on ours.
double CostModel::engine_backend(const Hardware& hw) const {
  switch (effects_.engine) {
  case Engine::deepspeed_chat:
    return hw.dschat_compute;
  case Engine::openrlhf:
    return hw.openrlhf_compute;
  case Engine::own:
    break;
  }
  return 1;
}

double CostModel::link_Bps(const Job& job, bool between_nodes) const {
  const auto& hw = numbers(job.kinds);
  return between_nodes ? hw.inter_Bps : hw.intra_Bps;
}

double CostModel::link_latency_s(const Job& job, bool between_nodes) const {
  const auto& hw = numbers(job.kinds);
  return between_nodes ? hw.inter_lat_s : hw.intra_lat_s;
}

double gather_Bps(const Hardware& hardware, bool between_nodes) {
  return hardware.gather_Bps > 0 && !between_nodes ? hardware.gather_Bps
                                                   : hardware.zero_Bps;
}

/// Two all-reduces of the hidden states of `tokens` tokens over the tp group;
/// and tokens to the experts of other dp ranks, after their number, and their
/// outputs back. Loads of experts count as even.
double CostModel::layer_network_s(const Job& job, double tokens) const {
  const auto& m = job.model;
  const double dp_ranks = job.placement.strategy.expert_group_dp();
  double seconds = 0;
  if (job.t > 1)
    seconds += 2
               * (2 * (job.t - 1) / job.t * m.bytes.activation * m.hidden
                    * tokens / link_Bps(job, job.span.tensor)
                  + link_latency_s(job, job.span.tensor));
  if (dp_ranks > 1) {
    const auto bytes
      = m.bytes.expert_row * m.hidden * tokens * m.experts.per_token / job.t;
    seconds
      += 2 * (dp_ranks - 1) / dp_ranks * bytes / link_Bps(job, job.span.data)
         + 3 * link_latency_s(job, job.span.data);
    if (is_counted()) // by the hosts: off the GPU and on, both ways
      seconds += 4 * bytes / numbers(job.kinds).host_Bps;
  }
  return seconds;
}

/// Gathers the keys and values of a cp group, of which this device has
/// `tokens`.
double CostModel::context_s(const Job& job, double tokens) const {
  const double ranks = job.placement.strategy.cp;
  if (ranks <= 1)
    return 0;
  const auto& m = job.model;
  const auto bytes
    = 2 * (ranks - 1) * m.bytes.activation * tokens * m.kv_width / job.t;
  return bytes / link_Bps(job, job.span.context)
         + link_latency_s(job, job.span.context);
}

CostModel::LayerTime CostModel::layer(const Job& job, PassKind kind,
                                      double tokens, double attends) const {
  if (is_counted())
    return gpu_layer(job, kind, tokens, attends);
  const auto& m = job.model;
  const auto& hw = numbers(job.kinds);
  const auto width = m.hidden / job.t;
  const auto rate = hw.gemm_flops * width / (width + hw.gemm_width_half);
  const auto gemm = std::max(2 * m.used_parameters() * tokens / (job.t * rate),
                             m.bytes.weight * m.read_parameters(tokens)
                               / (job.t * hw.mem_Bps));
  const auto passes = elementwise_passes + expert_passes * m.experts.per_token;
  const auto other
    = 2 * m.attention_width * attends * tokens / (job.t * hw.attn_flops)
      + passes * m.bytes.activation * tokens * m.hidden / (job.t * hw.mem_Bps);
  LayerTime time{.compute = gemm + other,
                 .network = layer_network_s(job, tokens),
                 .gather = context_s(job, tokens),
                 .host = hw.launch_layer_s
                           * m.launches(tokens, job.placement.strategy)
                         + (job.t > 1 ? hw.launch_tp_extra_s : 0.0)};
  time.compute *= engine_backend(hw);
  time.backward_compute = m.trained.backward * time.compute;
  time.backward_host = 2 * time.host;
  return time;
}

double CostModel::head_s(const Job& job, PassKind kind, double tokens,
                         double products) const {
  if (is_counted())
    return gpu_head_s(job, kind, tokens, products);
  const auto& m = job.model;
  const auto& hw = numbers(job.kinds);
  const auto once
    = 2 * m.head_width * m.hidden * tokens
        / (head_efficiency * job.t * hw.gemm_flops)
      + logits_bytes_a_token * m.head_width * tokens / (job.t * hw.mem_Bps);
  return products * once;
}

/// Sends the hidden states of `tokens` tokens to the next stage.
double CostModel::hop_s(const Job& job, double tokens) const {
  if (job.p <= 1)
    return 0;
  const auto bytes = job.model.bytes.activation * tokens * job.model.hidden;
  const bool far = job.span.pipeline;
  return bytes / ((far ? job.t : 1) * link_Bps(job, far))
         + link_latency_s(job, far);
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

/// Gathers a stage's sharded weights `times` times, as kernels read them.
double CostModel::gather_s(const Job& job, double times) const {
  if (job.placement.strategy.zero != Zero::z3 || job.d <= 1)
    return 0;
  const auto bytes = job.model.parameters * job.model.bytes.gathered
                     / (job.t * job.p) * (job.d - 1) / job.d;
  return times * bytes / gather_Bps(numbers(job.kinds), job.span.data);
}

/// Returns the measured seconds of `op`; on several kinds of nodes those of the
/// slowest, if it was measured on all of them.
std::optional<double> CostModel::measured_s(const Job& job, ProfileOp op,
                                            double tokens) const {
  const auto of = [&](const ProfileTable& table) {
    return table.seconds(op, static_cast<std::uint64_t>(job.model.parameters),
                         job.placement.strategy.tp, tokens);
  };
  const auto& kinds = problem_.hardware.kinds;
  if (kinds.empty())
    return of(problem_.profile);
  double slowest = 0;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if ((job.kinds >> kind & 1) == 0)
      continue;
    const auto seconds = of(kinds[kind].profile);
    if (!seconds)
      return std::nullopt;
    slowest = std::max(slowest, *seconds);
  }
  return slowest;
}

/// Returns the seconds of passes of `op` over `tokens` each, if it was
/// measured. The last stage has the head's share of a whole pass; prompts need
/// the head for their last token only.
std::optional<double> CostModel::measured_passes_s(const Job& job, ProfileOp op,
                                                   double tokens,
                                                   double hop) const {
  const auto measured = measured_s(job, op, tokens);
  if (!measured)
    return std::nullopt;
  const auto head
    = op == ProfileOp::prefill ? 0 : *measured * job.model.head_share();
  const auto gathers = op == ProfileOp::train ? 1 + backward_gathers : 1;
  return passes_s(job,
                  (*measured - head) / job.model.layers
                    + gathers * context_s(job, tokens),
                  head, hop);
}

} // namespace troupe::plans
