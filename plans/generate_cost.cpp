// CostModel's seconds of generation: the prompts at once, then a token of all
// answers after another.
#include "plans/cost_model.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::plans {

namespace {

/// Products of decoding reach less of their rate.
constexpr double decode_efficiency = 0.7;
/// Sampling: logits in fp32, sorted and summed.
constexpr double sampling_bytes_a_token = 24;

} // namespace

double CostModel::prefill_s(const Job& job) const {
  const auto prompt = problem_.lengths.prompt();
  const auto tokens = job.samples * prompt;
  const auto hop = hop_s(job, tokens);
  if (const auto all = measured_passes_s(job, ProfileOp::prefill, tokens, hop))
    return *all;
  return passes_s(job, layer(job, tokens, prompt).forward(), 0, hop);
}

/// Attention of one token each of `answers` answers to `context` tokens: their
/// keys and values are read once, and multiplied by the heads that share them.
double CostModel::decode_attention_s(const Job& job, double answers,
                                     double context) const {
  const auto& m = job.model;
  const auto& hw = hardware_;
  const auto rate = hw.cache_Bps > 0 ? hw.cache_Bps : hw.mem_Bps;
  const auto kv_width = std::max(m.kv_width / job.t, 1.0);
  const auto read_s = answers * context * 2 * m.element_bytes * kv_width / rate;
  const auto product_s
    = answers * context * 4 * m.attention_width / (job.t * hw.attn_flops);
  return std::max(read_s, product_s);
}

/// One token of `answers` answers with `context` tokens each before it, in one
/// layer: the roofline of its weights, then that of attention, then two sums
/// over the tensor peers.
double CostModel::decode_token_s(const Job& job, double answers,
                                 double context) const {
  const auto& m = job.model;
  const auto& hw = hardware_;
  const auto weights = std::max(
    m.element_bytes * m.read_parameters(answers) / (job.t * hw.mem_Bps),
    2 * m.used_parameters() * answers
      / (decode_efficiency * job.t * hw.gemm_flops));
  const auto device = weights + decode_attention_s(job, answers, context)
                      + 2 * tensor_sum_s(job, answers);
  if (effects_.engine == Engine::deepspeed_chat)
    return std::max(device, hw.dschat_decode_layer_s);
  if (hw.launch_graph_s > 0)
    return device + hw.launch_graph_s * m.launches(answers);
  return std::max(device, hw.launch_layer_s * m.launches(answers)
                            + (job.t > 1 ? hw.launch_tp_extra_s : 0.0));
}

/// A token of every lane: each stage works on one lane after the other, and a
/// lane goes round all stages before its next token.
double CostModel::ring_s(const Job& job, double slowest_s, double all_s) const {
  const auto hops = job.p > 1 ? job.p * link_latency_s(job.span.pipeline) : 0.0;
  return std::max(job.micro_batches * slowest_s, all_s + hops);
}

/// Of a measured decode step; the last stage has the head.
double CostModel::measured_token_s(const Job& job, double step_s) const {
  const auto& m = job.model;
  const auto head = step_s * m.head_share();
  const auto layer_s = (step_s - head) / m.layers;
  return ring_s(job, slowest_s(job, layer_s, head), step_s);
}

/// Prompts and answers of as many samples as there are places for, up to the
/// longest one.
double CostModel::first_answers_s(const Job& job) const {
  return generate_s(job,
                    problem_.lengths.phases(job.samples * job.micro_batches));
}

/// As many again that take the places as they get free.
double CostModel::steady_answers_s(const Job& job) const {
  return generate_s(
    job, {problem_.lengths.steady_phase(job.samples * job.micro_batches)});
}

/// What those add that had to wait for a place.
double CostModel::later_answers_s(const Job& job) const {
  return job.rounds > 1 ? (job.rounds - 1) * steady_answers_s(job) : 0;
}

/// OpenRLHF makes its experience in rounds of `micro_rollout_batch_size`: each
/// waits for the longest answer of the one before.
double CostModel::rollout_s(const Job& job) const {
  if (effects_.engine != Engine::openrlhf)
    return first_answers_s(job) + later_answers_s(job);
  auto round = job;
  round.samples /= hardware_.openrlhf_rounds;
  return hardware_.openrlhf_rounds
         * (first_answers_s(round) + later_answers_s(round));
}

double CostModel::generate_s(const Job& job,
                             const std::vector<DecodePhase>& phases) const {
  const auto& lengths = problem_.lengths;
  const auto& m = job.model;
  const auto layers = std::max(job.other_layers, job.last_layers);
  double seconds = prefill_s(job);
  for (const auto& phase : phases) {
    const auto answers = phase.active / job.micro_batches;
    const auto measured = problem_.profile.seconds(
      ProfileOp::decode, m.num_parameters, job.placement.strategy.tp, answers);
    if (measured) {
      seconds += phase.steps * measured_token_s(job, *measured);
      continue;
    }
    const auto logits
      = 2 * m.head_width * m.hidden / (job.t * hardware_.mem_Bps)
        + sampling_bytes_a_token * answers * m.head_width / hardware_.mem_Bps;
    const auto stage_s
      = layers * decode_token_s(job, answers, lengths.prompt() + phase.context)
        + hardware_.stage_token_s;
    seconds += phase.steps * (ring_s(job, stage_s, job.p * stage_s) + logits);
  }
  return seconds;
}

} // namespace troupe::plans
