// CostModel's seconds of generation: all prompts at once, then one token of
// every response per step.
#include "plans/cost/cost_model.hpp"
#include "plans/cost/gpu_layer.hpp"
#include "plans/memory/call_memory.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::plans {

using internal::sampling_bytes_a_token;

namespace {

/// Matrix products of decoding reach only this share of their rate.
constexpr double decode_efficiency = 0.7;
/// Passes of an update over a server's weights: they are read, written and
/// summed by us, summed, read and written by the server.
constexpr double server_update_passes = 6;
constexpr double server_element_bytes = 4; ///< a memory file has fp32

} // namespace

/// Feeds `samples` sequences of `length` tokens each; where a GPU's passes are
/// counted, a full one ends within a sequence that the next one continues.
double CostModel::prefill_s(const Job& job, double samples,
                            double length) const {
  const auto tokens = samples * length;
  const auto hop = hop_s(job, tokens);
  if (const auto all = measured_passes_s(job, ProfileOp::prefill, tokens, hop))
    return *all;
  if (!counts_decoding())
    return passes_s(job, layer(job, PassKind::score, tokens, length).forward(),
                    0, hop);
  const auto most = problem_.sizes.max_batch_tokens > 0
                      ? problem_.sizes.max_batch_tokens
                      : defaults::micro_batch_tokens;
  const auto passes = prompt_passes(tokens, length, double(most));
  auto fed = job;
  fed.micro_batches *= passes.count;
  const auto given = prompt_layer(fed.model, passes, fed.placement.strategy,
                                  numbers(fed.kinds).compute_capability);
  const auto time = gpu_forward(fed, passes.tokens, length, given);
  return passes_s(fed, time.forward(), 0, hop_s(fed, passes.tokens));
}

/// Attention of `responses` responses with one query token each over `context`
/// tokens: their keys and values are read once and multiplied by the heads that
/// share them.
double CostModel::decode_attention_s(const Job& job, double responses,
                                     double context) const {
  const auto& m = job.model;
  const auto& hw = numbers(job.kinds);
  const auto rate = hw.cache_Bps > 0 ? hw.cache_Bps : hw.mem_Bps;
  const auto kv_width = std::max(m.kv_width / job.t, 1.0);
  const auto read_s = responses * context * 2 * m.bytes.cache * kv_width / rate;
  const auto product_s
    = responses * context * 4 * m.attention_width / (job.t * hw.attn_flops);
  return std::max(read_s, product_s);
}

/// One token for each of `responses` responses with `context` tokens before it,
/// in one layer: the roofline of the weights, then that of attention, then two
/// all-reduces over the tp group.
double CostModel::decode_token_s(const Job& job, double responses,
                                 double context) const {
  const auto& m = job.model;
  const auto& hw = numbers(job.kinds);
  const auto read_s
    = counts_decoding()
        ? gpu_decode_read_s(job, responses)
        : m.bytes.factor * m.read_parameters(responses) / (job.t * hw.mem_Bps);
  const auto weights
    = std::max(read_s, 2 * m.used_parameters() * responses
                         / (decode_efficiency * job.t * hw.gemm_flops));
  const auto device = weights + decode_attention_s(job, responses, context)
                      + layer_network_s(job, responses);
  if (effects_.engine == Engine::deepspeed_chat)
    return std::max(device, hw.dschat_decode_layer_s);
  if (counts_decoding())
    return gpu_decode_layer_s(job, responses, device);
  const auto launches = m.launches(responses, job.placement.strategy);
  if (hw.launch_graph_s > 0)
    return device + hw.launch_graph_s * launches;
  return std::max(device, hw.launch_layer_s * launches
                            + (job.t > 1 ? hw.launch_tp_extra_s : 0.0));
}

/// One token of every lane: each stage works on one lane after the other, and a
/// lane passes all stages before its next token.
double CostModel::ring_s(const Job& job, double slowest_s, double all_s) const {
  const auto hops
    = job.p > 1 ? job.p * link_latency_s(job, job.span.pipeline) : 0.0;
  return std::max(job.micro_batches * slowest_s, all_s + hops);
}

/// Prompts and responses of as many samples as there are slots, up to the
/// longest response.
double CostModel::first_responses_s(const Job& job) const {
  return prefill_s(job, job.samples, problem_.lengths.prompt())
         + decode_s(job,
                    problem_.lengths.phases(job.samples * job.micro_batches));
}

/// The same number of samples again, each starting when a slot becomes free.
double CostModel::steady_responses_s(const Job& job) const {
  return prefill_s(job, job.samples, problem_.lengths.prompt())
         + decode_s(job, {problem_.lengths.steady_phase(job.samples
                                                        * job.micro_batches)});
}

/// OpenRLHF generates in rounds of `micro_rollout_batch_size`: each waits for
/// the longest response of the round before.
double CostModel::rollout_s(const Job& job) const {
  const auto all_s = [&](const Job& some) { // others wait for a slot
    const auto later = some.rounds - 1;
    return first_responses_s(some)
           + (later > 0 ? later * steady_responses_s(some) : 0);
  };
  if (effects_.engine != Engine::openrlhf)
    return all_s(job);
  auto round = job;
  const auto rounds = numbers(job.kinds).openrlhf_rounds;
  round.samples /= rounds;
  return rounds * all_s(round);
}

/// The trained weights or adapters through the memory of a server's host, which
/// a profile of GPUs knows as the rate between device and host only.
double CostModel::update_s(const Call& call, const Placement& placement) const {
  const auto job = make_job(call, placement);
  const auto& hw = numbers(job.kinds);
  const auto rate = hw.mem_bytes > 0 ? hw.host_Bps : hw.mem_Bps;
  if (rate <= 0 || !effects_.moves)
    return 0;
  return problem_.measured.move_factor * server_update_passes
         * server_element_bytes * job.model.trained.parameters / rate;
}

/// As many as fill the cache at their mean length when they end, so that none
/// is preempted on average: fewer than fit while most are still short.
double CostModel::responses_at_once(const Call& call,
                                    const Placement& placement) const {
  const auto& shape = problem_.shapes.at(call.role);
  const auto dtype = problem_.dtype(call.role);
  const auto sizes = sizes_of(call, problem_.sizes);
  const auto whole
    = static_cast<double>(responses_under_way(shape, dtype, placement, sizes));
  const auto most
    = static_cast<double>(sequences_under_way(shape, dtype, placement, sizes));
  const auto longer = static_cast<double>(sizes.max_sequence_tokens)
                      / problem_.lengths.sequence_mean();
  return std::clamp(whole * longer, whole, most);
}

/// Each slice begins with what is left of its responses, and feeds them first.
/// Responses beyond the slots wait: more steps of fewer at once.
double CostModel::slices_s(const Call& call, const Placement& placement,
                           std::uint32_t first, std::uint32_t last) const {
  const auto job = make_job(call, placement);
  const auto& lengths = problem_.lengths;
  const auto count = static_cast<std::uint32_t>(placement.slices);
  const auto limit = problem_.sizes.max_new_tokens > 0
                       ? double(problem_.sizes.max_new_tokens)
                       : lengths.max();
  const auto samples = job.samples * job.rounds;
  const auto places = responses_at_once(call, placement);
  double seconds = 0;
  std::vector<double> starts;
  for (auto slice = first; slice <= last; ++slice) {
    starts.push_back(limit * slice / count);
    const auto left = slice == 0 ? 1.0 : lengths.survival(starts.back());
    if (left > 0)
      seconds
        += prefill_s(job, samples * left, lengths.prompt() + starts.back());
  }
  auto phases
    = lengths.phases_from(starts, limit / count, samples * job.micro_batches);
  for (auto& phase : phases)
    if (phase.active > places) {
      phase.steps *= phase.active / places;
      phase.active = places;
    }
  return problem_.measured.factor_of(call.name)
         * cores_.alone(placement.devices)
         * (numbers(kinds_of(placement.devices)).call_s + master_s(placement)
            + gather_s(job, 1) + seconds + decode_s(job, phases));
}

/// One token of every response: all layers of all stages, and the draw.
double CostModel::step_s(const Job& job, double responses,
                         double context) const {
  const auto& m = job.model;
  const auto& hw = numbers(job.kinds);
  const auto layers = std::max(job.other_layers, job.last_layers);
  const auto stage_s
    = layers
      * decode_token_s(job, responses, problem_.lengths.prompt() + context);
  const auto host_s = hw.stage_token_s;
  const auto ring = [&](double of_a_stage) {
    return ring_s(job, of_a_stage, job.p * of_a_stage);
  };
  if (!counts_decoding())
    return ring(stage_s + host_s)
           + 2 * m.head_width * m.hidden / (job.t * hw.mem_Bps)
           + sampling_bytes_a_token * responses * m.head_width / hw.mem_Bps;
  const auto draw = gpu_draw(job, responses);
  if (runs_ahead(m, job.placement.strategy, hw.compute_capability)
      && problem_.sizes.engine.draws == DrawPlace::device)
    return std::max(stage_s + draw.compute, host_s + draw.host);
  return ring(stage_s + host_s) + draw.compute + draw.host;
}

double CostModel::decode_s(const Job& job,
                           const std::vector<DecodePhase>& phases) const {
  const auto& m = job.model;
  double seconds = 0;
  for (const auto& phase : phases) {
    const auto responses = phase.active / job.micro_batches;
    const auto measured = measured_s(job, ProfileOp::decode, responses);
    if (measured) {
      // the last stage has the head
      const auto head = *measured * m.head_share();
      const auto layer_s = (*measured - head) / m.layers;
      seconds
        += phase.steps * ring_s(job, slowest_s(job, layer_s, head), *measured);
      continue;
    }
    seconds += phase.steps * step_s(job, responses, phase.context);
  }
  return seconds;
}

} // namespace troupe::plans
