// AReaL: engines and trainers on devices of their own, generation some versions
// ahead of training (`max_head_offpolicyness`); or, of late, in turn on the
// same.
#include "plans/foreign/allocation_mode.hpp"
#include "plans/foreign/recipe_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

class ArealReader {
public:
  ArealReader(ForeignReader& reader, Recipe& recipe)
    : reader_(reader),
      recipe_(recipe) {}

  void read() {
    auto& work = recipe_.work;
    work.nodes = reader_.count({"cluster.n_nodes"}, 1, "cluster.nodes");
    work.devices_per_node = reader_.count({"cluster.n_gpus_per_node"}, 8,
                                          "cluster.devices_per_node");
    set_model(recipe_, "actor",
              reader_.model({"actor.path"}, "models.actor.path"));
    sizes();
    algorithm();
    layout();
    settings();
    leave_out();
  }

private:
  void sizes() {
    sizes_.prompts
      = reader_.integer({"train_dataset.batch_size"}, 256, "data.batch_size");
    sizes_.samples_a_prompt = reader_.count(
      {"gconfig.n_samples", "actor.group_size"}, 1, "rollout.n");
    sizes_.max_prompt = reader_.integer({"train_dataset.max_length"}, 1024,
                                        "data.max_prompt_tokens");
    sizes_.max_response = reader_.integer({"gconfig.max_new_tokens"}, 16384,
                                          "rollout.max_new_tokens");
    set_sizes(recipe_, sizes_);
    recipe_.work.set("algorithm.mini_batches", std::to_string(reader_.integer(
                                                 {"actor.ppo_n_minibatches"}, 4,
                                                 "algorithm.mini_batches")));
  }

  void algorithm() {
    const bool critic = reader_.has({"critic.path"});
    set_estimator(recipe_, critic ? "gae" : "grpo", {});
    if (critic)
      set_model(
        recipe_, "critic",
        *reader_.find_text({"critic.path"}, "workflow, models.critic.path"));
    const auto coef
      = reader_.number({"actor.kl_ctl"}, 0.1, "algorithm.kl_coef");
    set_kl(recipe_, coef == 0 ? "none" : "reward");
    if (coef != 0)
      recipe_.work.set("algorithm.kl_coef", fmt::format("{}", coef));
    const bool again = reader_.flag({"actor.recompute_logprob"}, false,
                                    "algorithm.old_logprobs");
    recipe_.work.set("algorithm.old_logprobs", again ? "recompute" : "rollout");
    recipe_.work.set("reward.kind", "rule");
  }

  void layout() {
    const auto text
      = reader_.find_text({"allocation_mode"}, "placement of all calls");
    if (!text)
      reader_.refuse({"allocation_mode"}, "devices of engines and trainers",
                     "allocation_mode=sglang:d4+fsdp:d4 after the file");
    const auto found = parse_allocation(*text, {});
    const auto engines = found.generation.num_devices();
    auto& out = recipe_.layout;
    out.generation = generation_part(reader_, {"allocation_mode"}, 0, engines,
                                     found.generation.tp, found.generation.pp);
    out.actor = training_part(
      reader_, {"allocation_mode"}, found.colocated ? 0 : engines,
      found.training.num_devices(),
      {.tp = found.training.tp,
       .pp = found.training.pp,
       .zero = found.training.backend == "megatron" || found.training.pp > 1
                 ? 1
                 : 3});
    out.actor.micro_batch_tokens = reader_.integer(
      {"actor.mb_spec.max_tokens_per_mb"}, 32768, "micro_batch_tokens");
    if (found.training.others > 1 || found.generation.others > 1)
      recipe_.notes.push_back({{},
                               "allocation_mode: context and expert degrees "
                               "are not in our strategies"});
    if (recipe_.work.workflow == "ppo")
      out.critic = out.actor;
    if (recipe_.work.get("algorithm.kl_in") != "none") {
      out.ref = frozen_part(out.actor);
      reader_.find_text({"ref.path"}, "models.ref.path");
    }
    out.engine = found.generation.backend == "vllm" ? "vllm" : "sglang";
    out.engine_sleeps = found.colocated;
    out.engine_share = out.engine == "vllm"
                         ? reader_.number({"vllm.gpu_memory_utilization"}, 0.9,
                                          "rollout.kv_cache_gb")
                         : reader_.number({"sglang.mem_fraction_static"}, 0.9,
                                          "rollout.kv_cache_gb");
    const auto used = out.actor.first + out.actor.count;
    if (used > recipe_.work.num_devices())
      reader_.refuse({"allocation_mode"},
                     fmt::format("at most {} devices, as cluster.* has",
                                 recipe_.work.num_devices()),
                     "");
    lag(found.colocated);
  }

  void lag(bool colocated) {
    const auto behind
      = reader_.integer({"rollout.max_head_offpolicyness"}, 0, "lag.actor_gen");
    if (!colocated)
      set_lag(recipe_, behind);
    if (behind > 1 && !colocated)
      recipe_.notes.push_back(
        {{},
         fmt::format("rollout.max_head_offpolicyness {}: planned as a "
                     "generation that is that many steps ahead at all "
                     "times, not at most",
                     behind)});
    reader_.copy({"sglang.max_running_requests"}, "rollout.max_sequences");
  }

  void settings() {
    reader_.copy({"actor.optimizer.lr"}, "models.actor.optimizer.lr");
    reader_.copy({"gconfig.temperature"}, "rollout.temperature");
    reader_.copy({"gconfig.top_p"}, "rollout.top_p");
    reader_.copy({"experiment_name"}, "run.name");
    const bool recompute = reader_.flag({"actor.gradient_checkpointing"}, true,
                                        "algorithm.recompute");
    recipe_.work.set("algorithm.recompute", recompute ? "true" : "false");
  }

  void leave_out() {
    reader_.not_modelled({"actor.use_lora"},
                         "all weights are planned as trained");
    reader_.not_modelled({"dynamic_bs"}, "prompts are not drawn again");
    reader_.irrelevant({"experiment_name",
                        "trial_name",
                        "seed",
                        "enable_offload",
                        "total_train",
                        "tokenizer_path",
                        "cluster.",
                        "scheduler.",
                        "rollout.",
                        "gconfig.",
                        "actor.experiment",
                        "actor.trial",
                        "actor.init_",
                        "actor.disable_dropout",
                        "actor.dtype",
                        "actor.optimizer.",
                        "actor.eps_clip",
                        "actor.reward_",
                        "actor.adv_norm",
                        "actor.use_decoupled",
                        "actor.behav_",
                        "actor.weight_update",
                        "actor.max_new_tokens",
                        "actor.scheduling",
                        "actor.temperature",
                        "actor.colocated",
                        "actor.backend",
                        "ref.",
                        "ref",
                        "sglang.",
                        "vllm.",
                        "train_dataset.",
                        "valid_dataset.",
                        "saver.",
                        "recover.",
                        "checkpointer.",
                        "evaluator.",
                        "stats_logger.",
                        "perf_tracer.",
                        "launcher.",
                        "critic.",
                        "async_training",
                        "config",
                        "actor.mb_spec.",
                        "actor.fsdp.",
                        "actor.megatron."});
  }

  ForeignReader& reader_;
  Recipe& recipe_;
  StepSizes sizes_;
};

} // namespace

void read_areal(ForeignReader& reader, Recipe& recipe) {
  ArealReader(reader, recipe).read();
}

} // namespace troupe::plans
