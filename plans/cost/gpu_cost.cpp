// CostModel's seconds of our own engine on GPUs, from the counts of
// gpu_counts.hpp: a kernel takes its products or its bytes, a layer as long as
// its kernels or their launches, and copies that stop the host are added.
#include "plans/cost/cost_model.hpp"
#include "plans/cost/gpu_layer.hpp"

#include <algorithm>

namespace troupe::plans {

using internal::head_efficiency;
using internal::sampling_bytes_a_token;

namespace {

constexpr double bytes_of_count = 2; ///< of a number: counts are those of bf16
constexpr double bytes_of_logit = 4;
constexpr double sums_of_layer = 2; ///< over tensor peers
/// For the drawn tokens, if the host waits for them.
constexpr std::int64_t copies_of_drawn = 1;

/// Returns the seconds in which the host launches kernels; a profile has those
/// of a layer's forward pass alone.
double launches_s(const Hardware& hw, double launches) {
  return launches
         * (hw.launch_s > 0
              ? hw.launch_s
              : hw.launch_layer_s
                  / static_cast<double>(gpu_counts.score_layer.launches));
}

/// Returns those between the kernels of a graph, and at least those between
/// kernels that are launched one by one; 0: there are no graphs.
double graph_seconds(const Hardware& hw, double launches) {
  return launches
         * (hw.graph_gap_s > 0
              ? hw.graph_gap_s
              : hw.launch_graph_s
                  / static_cast<double>(gpu_counts.decode_layer.launches));
}

double copies_s(const Hardware& hw, std::int64_t copies) {
  return static_cast<double>(copies) * hw.copy_s;
}

} // namespace

bool CostModel::is_counted() const {
  return problem_.sizes.engine.storage == StorageRule::gpu;
}

bool CostModel::counts_decoding() const {
  return is_counted() && !problem_.sizes.engine.serves;
}

/// Narrow shards are slower, and so are the parts of experts that tp cuts.
double CostModel::gpu_products_s(const Job& job, double tokens) const {
  const auto& m = job.model;
  const auto& hw = numbers(job.kinds);
  const auto seconds = [&](double parameters, double width) {
    return parameters == 0
             ? 0
             : 2 * parameters * tokens * (width + hw.gemm_width_half)
                 / (job.t * hw.gemm_flops * width);
  };
  const auto of_experts = m.experts.per_token * m.experts.parameters;
  return seconds(m.used_parameters() - of_experts, m.hidden / job.t)
         + seconds(of_experts, expert_width(m, job.placement.strategy));
}

/// `products`: those of a pass for each one of forward. Their bytes are read
/// and written while they compute, the other ones not.
double CostModel::gpu_kernels_s(const Job& job, double tokens, double attends,
                                double products, double bytes) const {
  const auto& m = job.model;
  const auto& hw = numbers(job.kinds);
  const auto traffic = m.traffic.under(job.placement.strategy);
  const auto weights = m.read_parameters(tokens) / job.t;
  const auto scale = m.bytes.factor / bytes_of_count;
  const auto attention_s
    = 2 * m.attention_width * attends * tokens / (job.t * hw.attn_flops);
  const auto own
    = bytes_of_count * products * (weights + tokens * traffic.products());
  const auto rest = std::max(0.0, bytes - own);
  return std::max(products * gpu_products_s(job, tokens),
                  scale * own / hw.mem_Bps)
         + products * attention_s + scale * rest / hw.mem_Bps;
}

CostModel::LayerTime CostModel::gpu_forward(const Job& job, double tokens,
                                            double attends,
                                            const GpuLayer& given) const {
  const auto& m = job.model;
  const auto& hw = numbers(job.kinds);
  const auto bytes
    = least_forward_bytes(m.traffic.under(job.placement.strategy),
                          m.read_parameters(tokens) / job.t, tokens);
  return {.compute = gpu_kernels_s(job, tokens, attends, /*products=*/1,
                                   given.traffic * bytes)
                     + copies_s(hw, given.blocking_copies),
          .network = layer_network_s(job, tokens),
          .gather = context_s(job, tokens),
          .host = launches_s(hw, given.launches)
                  + (job.t > 1 ? hw.launch_tp_extra_s : 0.0)};
}

CostModel::LayerTime CostModel::gpu_layer(const Job& job, PassKind kind,
                                          double tokens, double attends) const {
  const auto& m = job.model;
  const auto& hw = numbers(job.kinds);
  const auto& strategy = job.placement.strategy;
  const auto given = [&](GpuPass pass) {
    return plans::gpu_layer(m, pass, tokens, strategy, hw.compute_capability);
  };
  const auto forward = given(GpuPass::score);
  const bool trains = kind == PassKind::train;
  const auto all = trains ? given(GpuPass::train) : forward;
  auto time
    = gpu_forward(job, tokens, attends,
                  {forward.launches, all.traffic, forward.blocking_copies});
  if (!trains)
    return time;
  const auto products = m.trained.backward;
  const auto bytes
    = least_backward_bytes(m.traffic.under(strategy),
                           m.read_parameters(tokens) / job.t, tokens)
      * products / 2;
  time.backward_compute
    = gpu_kernels_s(job, tokens, attends, products, all.traffic * bytes)
      + copies_s(hw, all.blocking_copies - forward.blocking_copies);
  time.backward_host = launches_s(hw, all.launches - forward.launches)
                       + (job.t > 1 ? hw.launch_tp_extra_s : 0.0);
  return time;
}

/// A chunk's rows are gathered, multiplied and summed up; the last stage does
/// this, and what else is done once per pass.
double CostModel::gpu_head_s(const Job& job, PassKind kind, double tokens,
                             double products) const {
  const auto& m = job.model;
  const auto& hw = numbers(job.kinds);
  const auto& counts
    = kind == PassKind::train ? gpu_counts.train_rest : gpu_counts.score_rest;
  const auto compute
    = 2 * m.head_width * m.hidden * tokens
        / (head_efficiency * job.t * hw.gemm_flops)
      + counts.traffic
          * least_rest_bytes(m.hidden, m.head_width / job.t, tokens)
          / hw.mem_Bps;
  return std::max(products * compute,
                  launches_s(hw, static_cast<double>(counts.launches)))
         + copies_s(hw, counts.blocking_copies);
}

/// Weights and activations of one layer, without keys and values.
double CostModel::gpu_decode_read_s(const Job& job, double responses) const {
  const auto& m = job.model;
  const auto bytes
    = least_decode_bytes(m.traffic.under(job.placement.strategy),
                         m.read_parameters(responses) / job.t, responses,
                         /*keys=*/0);
  const auto& hw = numbers(job.kinds);
  const auto layer
    = plans::gpu_layer(m, GpuPass::decode, responses, job.placement.strategy,
                       hw.compute_capability);
  return layer.traffic * bytes * m.bytes.factor / bytes_of_count / hw.mem_Bps;
}

/// Replayed as a graph, with its sums over tensor peers, or launched kernel by
/// kernel.
double CostModel::gpu_decode_layer_s(const Job& job, double responses,
                                     double device_s) const {
  const auto& m = job.model;
  const auto& hw = numbers(job.kinds);
  const auto& strategy = job.placement.strategy;
  const auto layer = plans::gpu_layer(m, GpuPass::decode, responses, strategy,
                                      hw.compute_capability);
  const auto sums = job.t > 1 ? sums_of_layer : 0.0;
  const auto gaps = graph_seconds(hw, layer.launches + sums);
  if (is_captured(m, strategy, hw.compute_capability) && gaps > 0)
    return device_s + gaps;
  const auto host_s
    = launches_s(hw, layer.launches) + (job.t > 1 ? hw.launch_tp_extra_s : 0.0);
  return std::max(device_s + gaps, host_s)
         + copies_s(hw, layer.blocking_copies);
}

/// The head of one token of each response, which all tensor peers draw from all
/// logits: where drawing is on the host, they are copied to it. Peers whose
/// steps are graphs meet before each.
CostModel::LayerTime CostModel::gpu_draw(const Job& job,
                                         double responses) const {
  const auto& m = job.model;
  const auto& hw = numbers(job.kinds);
  const auto& counts = gpu_counts.decode_rest;
  const auto logits = responses * m.head_width;
  const auto head
    = counts.traffic
      * least_rest_bytes(m.hidden, m.head_width / job.t, responses)
      / hw.mem_Bps;
  const auto gaps = graph_seconds(hw, double(counts.launches));
  const bool captured
    = is_captured(m, job.placement.strategy, hw.compute_capability) && gaps > 0;
  LayerTime time{
    .compute = captured
                 ? head + gaps
                 : std::max(head, launches_s(hw, double(counts.launches))),
    .host = copies_s(hw, copies_of_drawn)
            + (captured && job.t > 1 ? hw.launch_tp_extra_s : 0.0)};
  if (job.t > 1)
    time.compute += (job.t - 1) / job.t * bytes_of_logit * logits
                      / link_Bps(job, job.span.tensor)
                    + link_latency_s(job, job.span.tensor);
  if (problem_.sizes.engine.draws == DrawPlace::host)
    time.host += bytes_of_logit * logits / hw.host_Bps;
  else
    time.compute += sampling_bytes_a_token * logits / hw.mem_Bps;
  return time;
}

} // namespace troupe::plans
