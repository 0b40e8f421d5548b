#include "actors/worker_base/call_options.hpp"

#include "config/settings/workflow_traits.hpp"
#include "plans/check/plan_check.hpp"

#include <algorithm>
#include <limits>

namespace troupe::actors {

namespace {

/// Keeps the noise of an evaluation's responses apart from that of training
/// samples.
constexpr std::uint64_t evaluation_noise = 0x6576'616C'0000'0000;

models::LossMean loss_mean_of(const std::string& word) {
  if (word == "horizon")
    return models::LossMean::sequence_horizon;
  return word == "sequence" ? models::LossMean::sequence
                            : models::LossMean::token;
}

/// Limits responses: a cache size of the settings holds what it can; `auto` is
/// what the plan has room for, in bytes and in sequences of any length.
void limit_responses(models::GenerateOptions& options, const Settings& settings,
                     const plans::ResponseRoom& room) {
  constexpr auto no_limit = std::numeric_limits<std::int32_t>::max();
  const auto most = plans::most_responses_at_once(settings);
  options.max_sequences = most > 0 ? most : no_limit;
  options.kv_cache_bytes = std::numeric_limits<std::int64_t>::max();
  if (const auto gb = settings.rollout.kv_cache_gb) {
    options.kv_cache_bytes = static_cast<std::uint64_t>(*gb * 1e9);
  } else if (room.responses > 0) {
    options.max_sequences
      = std::min<std::int64_t>(options.max_sequences, room.sequences);
    options.kv_cache_bytes = room.cache_bytes;
  }
}

/// Returns what a call records of its tokens: masks only if it writes them,
/// which evaluations and greedy responses do not.
models::ResponseLogprobs response_logprobs(const Settings& settings,
                                           const plans::Call& call) {
  for (const auto& key : call.writes)
    if (settings.algorithm.loss.sampling_mask
        && call.argument(key) == "kept_ids")
      return models::ResponseLogprobs::masked;
  return settings.rollout.logprobs == "sampled"
           ? models::ResponseLogprobs::sampled
           : models::ResponseLogprobs::unfiltered;
}

/// Returns whether a call records experts: if it writes them.
bool records_experts(const plans::Call& call) {
  return std::ranges::any_of(call.writes, [&](const auto& key) {
    return call.argument(key) == "routed_experts";
  });
}

} // namespace

std::uint32_t mini_batches_of(const Settings& settings,
                              const plans::Workflow& workflow) {
  if (!workflow_reads(workflow.name, SettingsGroup::updates))
    return 1;
  return static_cast<std::uint32_t>(settings.algorithm.mini_batches);
}

std::uint32_t epochs_of(const Settings& settings,
                        const plans::Workflow& workflow) {
  if (!workflow_reads(workflow.name, SettingsGroup::updates))
    return 1;
  return static_cast<std::uint32_t>(settings.algorithm.epochs);
}

models::GenerateOptions generate_options(const Settings& settings,
                                         const plans::Call& call,
                                         const ModelShape& shape,
                                         const plans::ResponseRoom& room) {
  const RolloutSettings& rollout = settings.rollout;
  models::GenerateOptions options;
  options.max_new_tokens = rollout.max_new_tokens;
  options.min_new_tokens = rollout.min_new_tokens;
  options.temperature = rollout.temperature;
  options.top_k = rollout.top_k;
  options.top_p = rollout.top_p;
  options.min_p = rollout.min_p;
  options.repetition_penalty = rollout.repetition_penalty;
  options.greedy = rollout.command.greedy;
  options.ignore_eos = rollout.command.ignore_eos;
  options.record = {.logprobs = response_logprobs(settings, call),
                    .experts = records_experts(call)};
  options.max_batch_tokens = rollout.max_batch_tokens;
  limit_responses(options, settings, room);
  options.seed = settings.run.seed;
  options.stop_ids = shape.ends();
  if (call.greedy)
    options.greedy = true;
  if (call.evaluates) {
    const EvalSettings& eval = settings.eval;
    options.greedy = eval.temperature == 0;
    options.temperature = options.greedy ? 1.0 : eval.temperature;
    options.seed = settings.run.seed ^ evaluation_noise;
  }
  return options;
}

models::InferOptions infer_options(const Settings& settings,
                                   const plans::Call& call,
                                   const plans::Placement& placement) {
  return {.temperature = settings.rollout.temperature,
          .entropy
          = std::ranges::find(call.writes, "entropy") != call.writes.end(),
          .top_k = settings.algorithm.distillation.top_k,
          .micro_batch_tokens = placement.micro_batch_tokens,
          .micro_batches = placement.micro_batches};
}

std::uint32_t samples_per_row(const Settings& settings,
                              const plans::Workflow& workflow, bool evaluates) {
  if (!workflow.samples_are_prompts)
    return 1;
  return static_cast<std::uint32_t>(evaluates ? settings.eval.n
                                              : settings.rollout.n);
}

std::uint64_t trace_bytes_of_master(const Settings& settings) {
  return static_cast<std::uint64_t>(settings.trace.max_gb * 1e9) / 2;
}

std::uint64_t trace_bytes_of_worker(const Settings& settings,
                                    const plans::Cluster& cluster) {
  return trace_bytes_of_master(settings) / cluster.num_workers();
}

models::TrainSpec train_spec(const Settings& settings, const plans::Call& call,
                             const plans::Placement& placement) {
  const AlgorithmSettings& algorithm = settings.algorithm;
  models::TrainSpec spec;
  spec.fn = call.fn;
  spec.micro_batch_tokens = placement.micro_batch_tokens;
  spec.micro_batches = placement.micro_batches;
  spec.temperature = settings.rollout.temperature;
  spec.recompute = algorithm.recompute == "true";
  spec.loss.clip = algorithm.loss.clip_ratio;
  spec.loss.policy = models::policy_options(algorithm.loss);
  spec.loss.correction = models::correction_options(algorithm.correction);
  spec.loss.value_clip = algorithm.value.clip;
  spec.loss.entropy_coef = algorithm.entropy_coef;
  spec.loss.preference = algorithm.preference;
  spec.loss.distillation_beta = algorithm.distillation.beta;
  spec.loss.kl_coef = algorithm.kl_coef;
  spec.loss.kl_estimator = algorithm.kl_estimator;
  spec.loss.kl_in_loss = algorithm.kl_in == "loss";
  spec.loss.mean = loss_mean_of(algorithm.loss_mean);
  spec.loss.horizon = settings.rollout.max_new_tokens;
  return spec;
}

models::Engine::Spec engine_spec(const Settings& settings,
                                 const plans::Workflow& workflow,
                                 const plans::Role& role,
                                 const std::string& folder) {
  models::Engine::Spec spec;
  spec.folder = folder;
  spec.role = role.name;
  spec.scalar_head = role.scalar_head;
  spec.trainable = role.trained;
  spec.optimizer = settings.models.at(role.name).optimizer;
  spec.total_optimizer_steps = std::uint64_t(settings.run.steps)
                               * mini_batches_of(settings, workflow)
                               * epochs_of(settings, workflow);
  spec.seed = settings.run.seed;
  spec.dtype = plans::product_dtype(settings, role.name);
  return spec;
}

} // namespace troupe::actors
