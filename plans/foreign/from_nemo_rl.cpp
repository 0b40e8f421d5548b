// NeMo-RL: DTensor (FSDP2 with tensor parallelism) or Megatron trains; vLLM
// generates on the same devices or on nodes of its own. A file names only what
// differs from a base file, whose numbers are the defaults here.
#include "plans/foreign/recipe_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

// defaults: of examples/configs/grpo_math_1B.yaml, the base of most recipes
class NemoReader {
public:
  NemoReader(ForeignReader& reader, Recipe& recipe)
    : reader_(reader),
      recipe_(recipe) {}

  void read() {
    auto& work = recipe_.work;
    work.devices_per_node
      = reader_.count({"cluster.gpus_per_node"}, 1, "cluster.devices_per_node");
    work.nodes = reader_.count({"cluster.num_nodes"}, 1, "cluster.nodes");
    set_model(recipe_, "actor",
              reader_.text({"policy.model_name"}, "Qwen/Qwen2.5-1.5B",
                           "models.actor.path"));
    sizes();
    algorithm();
    layout();
    settings();
    leave_out();
  }

private:
  void sizes() {
    sizes_.prompts
      = reader_.integer({"grpo.num_prompts_per_step"}, 32, "data.batch_size");
    sizes_.samples_a_prompt
      = reader_.count({"grpo.num_generations_per_prompt"}, 16, "rollout.n");
    sizes_.samples_an_update = reader_.integer(
      {"policy.train_global_batch_size"}, 512, "algorithm.mini_batches");
    // one limit for prompt and response together
    const auto total
      = reader_.integer({"policy.max_total_sequence_length"}, 512,
                        "data.max_prompt_tokens, rollout.max_new_tokens");
    const auto prompt = reader_.find_integer({"data.max_input_seq_length"},
                                             "data.max_prompt_tokens");
    const auto most_prompt
      = std::max<std::int64_t>(1, std::min<std::int64_t>(1024, total / 4));
    sizes_.max_prompt = prompt && *prompt < total ? *prompt : most_prompt;
    if (sizes_.max_prompt == most_prompt)
      reader_.assume("(the longest prompt)", std::to_string(most_prompt),
                     "data.max_prompt_tokens");
    const auto response = reader_.find_integer(
      {"policy.generation.max_new_tokens"}, "rollout.max_new_tokens");
    sizes_.max_response = std::max<std::int64_t>(
      1, std::min(response.value_or(total), total - sizes_.max_prompt));
    set_sizes(recipe_, sizes_);
  }

  void algorithm() {
    set_estimator(
      recipe_,
      reader_.find_text({"grpo.adv_estimator.name"}, "algorithm.advantage")
        .value_or("grpo"),
      {});
    const auto beta = reader_.number({"loss_fn.reference_policy_kl_penalty"},
                                     0.01, "algorithm.kl_coef");
    set_kl(recipe_, beta == 0 ? "none" : "loss");
    if (beta != 0)
      recipe_.work.set("algorithm.kl_coef", fmt::format("{}", beta));
    // log-probabilities of the policy are computed before the update
    recipe_.work.set("algorithm.old_logprobs", "recompute");
    recipe_.work.set("reward.kind", "rule");
  }

  /// Returns the devices that generate alone; 0: all devices do both.
  std::uint32_t engine_devices() {
    const bool colocated = reader_.flag({"policy.generation.colocated.enabled"},
                                        true, "placement of actor_gen");
    const auto nodes
      = reader_.find_count({"policy.generation.colocated.resources.num_nodes"},
                           "devices of actor_gen");
    const auto each = reader_.find_count(
      {"policy.generation.colocated.resources.gpus_per_node"},
      "devices of actor_gen");
    if (colocated)
      return 0;
    const auto& work = recipe_.work;
    return nodes.value_or(1) * each.value_or(work.devices_per_node);
  }

  void layout() {
    auto& out = recipe_.layout;
    const auto all = recipe_.work.num_devices();
    const auto engines = engine_devices();
    if (engines >= all)
      reader_.refuse({"policy.generation.colocated.resources.num_nodes"},
                     fmt::format("fewer devices than the cluster's {}", all),
                     "");
    const auto tp
      = reader_.count({"policy.generation.vllm_cfg.tensor_parallel_size"}, 1,
                      "strategy of actor_gen");
    const auto pp
      = reader_.count({"policy.generation.vllm_cfg.pipeline_parallel_size"}, 1,
                      "strategy of actor_gen");
    out.generation = generation_part(
      reader_, {"policy.generation.vllm_cfg.tensor_parallel_size"}, 0,
      engines == 0 ? all : engines, tp, pp);
    out.engine_share
      = reader_.number({"policy.generation.vllm_cfg.gpu_memory_utilization"},
                       0.6, "rollout.kv_cache_gb");
    out.engine_sleeps = engines == 0;
    out.actor = trained(engines, all - engines);
    if (recipe_.work.get("algorithm.kl_in") != "none") {
      out.ref = frozen_part(out.actor);
      out.ref.offload_weights = true; // in the actor's place for the call
    }
    if (reader_.flag({"grpo.async_grpo.enabled"}, false, "lag.actor_gen"))
      set_lag(recipe_,
              reader_.integer({"grpo.async_grpo.max_trajectory_age_steps"}, 1,
                              "lag.actor_gen"));
  }

  LayoutPart trained(std::uint32_t first, std::uint32_t count) {
    const bool megatron
      = reader_.flag({"policy.megatron_cfg.enabled"}, false, "strategies");
    reader_.flag({"policy.dtensor_cfg.enabled"}, true, "strategies");
    LayoutPart part;
    if (megatron) {
      const auto tp
        = reader_.count({"policy.megatron_cfg.tensor_model_parallel_size"}, 1,
                        "strategies (t)");
      const auto pp
        = reader_.count({"policy.megatron_cfg.pipeline_model_parallel_size"}, 1,
                        "strategies (p)");
      part = training_part(reader_,
                           {"policy.megatron_cfg.tensor_model_parallel_size"},
                           first, count, {.tp = tp, .pp = pp, .zero = 1});
    } else {
      const auto tp
        = reader_.count({"policy.dtensor_cfg.tensor_parallel_size",
                         "policy.automodel_cfg.tensor_parallel_size"},
                        1, "strategies (t)");
      part = training_part(reader_, {"policy.dtensor_cfg.tensor_parallel_size"},
                           first, count, {.tp = tp, .zero = 3});
    }
    const bool offload = reader_.flag(
      {"policy.dtensor_cfg.cpu_offload", "policy.automodel_cfg.cpu_offload"},
      false, "roles.actor.offload");
    part.offload_weights = part.offload_optimizer = offload;
    const auto each = reader_.integer({"policy.train_micro_batch_size"}, 4,
                                      "micro_batch_tokens");
    part.micro_batch_tokens = each * sizes_.sequence();
    return part;
  }

  void settings() {
    reader_.copy({"policy.optimizer.kwargs.lr"}, "models.actor.optimizer.lr");
    reader_.copy({"policy.generation.temperature"}, "rollout.temperature");
    reader_.copy({"policy.generation.top_p"}, "rollout.top_p");
    reader_.copy({"grpo.max_num_steps"}, "run.steps");
    const bool recompute
      = reader_.flag({"policy.dtensor_cfg.activation_checkpointing",
                      "policy.automodel_cfg.activation_checkpointing",
                      "policy.megatron_cfg.activation_checkpointing"},
                     false, "algorithm.recompute");
    recipe_.work.set("algorithm.recompute", recompute ? "true" : "false");
  }

  void leave_out() {
    const std::string own = "our strategies have no such degree";
    reader_.not_modelled({"policy.dtensor_cfg.context_parallel_size",
                          "policy.automodel_cfg.context_parallel_size",
                          "policy.megatron_cfg.context_parallel_size"},
                         "planned without context parallelism", "1");
    reader_.not_modelled({"policy.megatron_cfg.expert_model_parallel_size",
                          "policy.megatron_cfg.expert_tensor_parallel_size",
                          "policy.generation.vllm_cfg.expert_parallel_size"},
                         own, "1");
    reader_.not_modelled({"policy.dtensor_cfg.sequence_parallel",
                          "policy.megatron_cfg.sequence_parallel"},
                         "planned without sequence parallelism");
    reader_.not_modelled({"grpo.use_dynamic_sampling"},
                         "one round of generation is planned");
    reader_.not_modelled({"grpo.max_rollout_turns"}, "planned as one turn",
                         "1");
    reader_.not_modelled({"policy.generation.vllm_cfg.enforce_eager"},
                         "decoding is planned with the hardware file's graphs");
    reader_.irrelevant({"grpo.",
                        "loss_fn.",
                        "checkpointing.",
                        "data.",
                        "env.",
                        "logger.",
                        "defaults",
                        "cluster.",
                        "policy.tokenizer.",
                        "policy.optimizer.",
                        "policy.scheduler.",
                        "policy.generation.",
                        "policy.megatron_cfg.",
                        "policy.precision",
                        "policy.max_grad_norm",
                        "policy.make_sequence",
                        "policy.dynamic_batching.",
                        "policy.sequence_packing.",
                        "policy.logprob_",
                        "policy.generation_batch_size",
                        "policy.dtensor_cfg.",
                        "policy.automodel_cfg."});
  }

  ForeignReader& reader_;
  Recipe& recipe_;
  StepSizes sizes_;
};

} // namespace

void read_nemo_rl(ForeignReader& reader, Recipe& recipe) {
  NemoReader(reader, recipe).read();
}

} // namespace troupe::plans
