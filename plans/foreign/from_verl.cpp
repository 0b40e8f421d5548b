// verl: one pool of devices for everything. FSDP or Megatron trains, an engine
// with its own tensor degree generates on the same devices, weights that do not
// work may be in host memory.
#include "plans/foreign/recipe_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

/// Keys below a model: of the actor, the ref, the critic, the reward model.
struct VerlModel {
  std::string section; ///< "actor_rollout_ref.actor"
  std::string fsdp;    ///< "actor_rollout_ref.actor.fsdp_config"
};

class VerlReader {
public:
  VerlReader(ForeignReader& reader, Recipe& recipe)
    : reader_(reader),
      recipe_(recipe) {}

  void read() {
    auto& work = recipe_.work;
    work.devices_per_node = reader_.count({"trainer.n_gpus_per_node"}, 8,
                                          "cluster.devices_per_node");
    work.nodes = reader_.count({"trainer.nnodes"}, 1, "cluster.nodes");
    sizes();
    algorithm();
    megatron_ = is_megatron();
    models();
    generation();
    settings();
    leave_out_absent();
    leave_out();
  }

private:
  void sizes() {
    sizes_.prompts
      = reader_.integer({"data.train_batch_size"}, 1024, "data.batch_size");
    sizes_.samples_a_prompt
      = reader_.count({"actor_rollout_ref.rollout.n"}, 1, "rollout.n");
    sizes_.max_prompt = reader_.integer({"data.max_prompt_length"}, 512,
                                        "data.max_prompt_tokens");
    sizes_.max_response = reader_.integer({"data.max_response_length"}, 512,
                                          "rollout.max_new_tokens");
    // in prompts, like the batch
    const auto mini
      = reader_.integer({"actor_rollout_ref.actor.ppo_mini_batch_size"}, 256,
                        "algorithm.mini_batches");
    sizes_.samples_an_update
      = std::min(mini, sizes_.prompts) * sizes_.samples_a_prompt;
    set_sizes(recipe_, sizes_);
    reader_.copy({"actor_rollout_ref.actor.ppo_epochs"}, "algorithm.epochs");
  }

  void algorithm() {
    const auto word = reader_.text({"algorithm.adv_estimator"}, "gae",
                                   "workflow, algorithm.advantage");
    set_estimator(recipe_, word, {});
    const bool in_loss = reader_.flag({"actor_rollout_ref.actor.use_kl_loss"},
                                      false, "algorithm.kl_in");
    // before use_kl_in_reward came, the reward always had a KL term
    const bool old_version = !reader_.has({"algorithm.use_kl_in_reward"})
                             && reader_.has({"algorithm.kl_ctrl.kl_coef"});
    const bool in_reward = reader_.flag({"algorithm.use_kl_in_reward"},
                                        old_version, "algorithm.kl_in");
    set_kl(recipe_, in_loss ? "loss" : in_reward ? "reward" : "none");
    if (in_loss)
      reader_.copy({"actor_rollout_ref.actor.kl_loss_coef"},
                   "algorithm.kl_coef");
    else if (in_reward)
      reader_.copy({"algorithm.kl_ctrl.kl_coef"}, "algorithm.kl_coef");
    // the actor scores each batch again before its first update
    const bool bypass = reader_.flag(
      {"algorithm.rollout_correction.bypass_mode",
       "algorithm.rollout_correction.bypass_old_logprob_for_rollout"},
      false, "algorithm.old_logprobs");
    recipe_.work.set("algorithm.old_logprobs",
                     bypass ? "rollout" : "recompute");
  }

  bool is_megatron() {
    const auto strategy
      = reader_.find_text({"actor_rollout_ref.actor.strategy", "model_engine",
                           "actor_rollout_ref.model.engine"},
                          "strategy of the trained models");
    const auto config
      = reader_.find_text({"config_name"}, "strategy of the trained models");
    return (strategy && strategy->find("megatron") != strategy->npos)
           || (config && config->find("megatron") != config->npos);
  }

  /// Reads degrees, offload and micro-batches of one model.
  LayoutPart part(const VerlModel& model, const LayoutPart* like,
                  const std::string& role) {
    const auto all = recipe_.work.num_devices();
    const auto call = "strategy of " + role;
    LayoutPart part;
    if (megatron_) {
      const auto key = model.section + ".megatron.";
      const auto degree = [&](const char* name, std::uint32_t other) {
        return reader_.find_count({(key + name).c_str()}, call).value_or(other);
      };
      const auto tp
        = degree("tensor_model_parallel_size", like ? like->strategy.tp : 1);
      const auto pp
        = degree("pipeline_model_parallel_size", like ? like->strategy.pp : 1);
      const auto tensor = key + "tensor_model_parallel_size";
      part = training_part(reader_, {tensor.c_str()}, 0, all,
                           {.tp = tp, .pp = pp, .zero = 1});
    } else {
      const auto size = model.fsdp + ".fsdp_size";
      part = training_part(reader_, {size.c_str()}, 0, all, {.zero = 3});
    }
    const auto offload = megatron_ ? model.section + ".megatron" : model.fsdp;
    part.offload_weights
      = reader_.flag({(offload + ".param_offload").c_str()}, false,
                     fmt::format("roles.{}.offload", role));
    part.offload_optimizer
      = reader_.flag({(offload + ".optimizer_offload").c_str()}, false,
                     fmt::format("roles.{}.offload", role));
    return role == "ref" || role == "reward" ? frozen_part(part) : part;
  }

  std::int64_t micro_tokens(const std::string& samples,
                            const std::string& tokens, bool dynamic) {
    const auto meaning = "micro_batch_tokens";
    const auto limit = reader_.find_integer({tokens.c_str()}, meaning);
    if (dynamic && limit)
      return *limit;
    if (const auto each
        = reader_.find_integer({(samples + "_per_gpu").c_str()}, meaning))
      return *each * sizes_.sequence();
    if (const auto whole = reader_.find_integer({samples.c_str()}, meaning))
      return std::max<std::int64_t>(1, *whole / recipe_.work.num_devices())
             * sizes_.sequence();
    return 0;
  }

  void models() {
    const std::string actor = "actor_rollout_ref.actor";
    auto& layout = recipe_.layout;
    const auto name
      = reader_.model({"actor_rollout_ref.model.path"}, "models.actor.path");
    set_model(recipe_, "actor", name);
    layout.actor = part({actor, actor + ".fsdp_config"}, nullptr, "actor");
    const bool dynamic = reader_.flag(
      {"actor_rollout_ref.actor.use_dynamic_bsz"}, false, "micro_batch_tokens");
    layout.actor.micro_batch_tokens
      = micro_tokens(actor + ".ppo_micro_batch_size",
                     actor + ".ppo_max_token_len_per_gpu", dynamic);
    if (recipe_.work.get("algorithm.kl_in") != "none") {
      const std::string ref = "actor_rollout_ref.ref";
      layout.ref = part({ref, ref + ".fsdp_config"}, &layout.actor, "ref");
      layout.ref.micro_batch_tokens
        = micro_tokens(ref + ".log_prob_micro_batch_size",
                       ref + ".log_prob_max_token_len_per_gpu", dynamic);
    }
    if (recipe_.work.workflow == "ppo")
      critic(name, dynamic);
    reward_model();
    const bool recompute
      = reader_.flag({"actor_rollout_ref.model.enable_gradient_checkpointing"},
                     true, "algorithm.recompute");
    recipe_.work.set("algorithm.recompute", recompute ? "true" : "false");
  }

  void critic(const std::string& actor, bool dynamic) {
    set_model(recipe_, "critic",
              reader_.text({"critic.model.path"}, actor, "models.critic.path"));
    auto& critic = recipe_.layout.critic;
    critic = part({"critic", "critic.model.fsdp_config"}, &recipe_.layout.actor,
                  "critic");
    critic.micro_batch_tokens
      = micro_tokens("critic.ppo_micro_batch_size",
                     "critic.ppo_max_token_len_per_gpu", dynamic);
  }

  void reward_model() {
    const bool has
      = reader_.flag({"reward_model.enable", "reward.reward_model.enable"},
                     false, "reward.kind");
    recipe_.work.set("reward.kind", has ? "model" : "rule");
    if (!has)
      return;
    set_model(recipe_, "reward",
              reader_.model(
                {"reward_model.model.path", "reward.reward_model.model_path"},
                "models.reward.path"));
    auto& reward = recipe_.layout.reward;
    reward = part({"reward_model", "reward_model.model.fsdp_config"},
                  &recipe_.layout.actor, "reward");
    reward.micro_batch_tokens
      = micro_tokens("reward_model.micro_batch_size",
                     "reward_model.forward_max_token_len_per_gpu", false);
  }

  void generation() {
    const auto tp
      = reader_.count({"actor_rollout_ref.rollout.tensor_model_parallel_size"},
                      1, "strategy of actor_gen");
    const auto pp
      = reader_
          .find_count(
            {"actor_rollout_ref.rollout.pipeline_model_parallel_size"},
            "strategy of actor_gen")
          .value_or(1);
    auto& layout = recipe_.layout;
    layout.generation = generation_part(
      reader_, {"actor_rollout_ref.rollout.tensor_model_parallel_size"}, 0,
      recipe_.work.num_devices(), tp, pp);
    layout.engine_share
      = reader_.number({"actor_rollout_ref.rollout.gpu_memory_utilization"},
                       0.5, "rollout.kv_cache_gb");
    layout.engine_sleeps
      = reader_.flag({"actor_rollout_ref.rollout.free_cache_engine"}, true,
                     "the engine leaves the devices");
    reader_.copy({"actor_rollout_ref.rollout.max_num_seqs"},
                 "rollout.max_sequences");
    reader_.copy({"actor_rollout_ref.rollout.max_num_batched_tokens"},
                 "rollout.max_batch_tokens");
  }

  void settings() {
    reader_.copy({"actor_rollout_ref.actor.optim.lr"},
                 "models.actor.optimizer.lr");
    if (recipe_.work.workflow == "ppo")
      reader_.copy({"critic.optim.lr"}, "models.critic.optimizer.lr");
    reader_.copy({"actor_rollout_ref.rollout.temperature"},
                 "rollout.temperature");
    reader_.copy({"actor_rollout_ref.rollout.top_p"}, "rollout.top_p");
    reader_.copy({"actor_rollout_ref.actor.entropy_coeff"},
                 "algorithm.entropy_coef");
    reader_.copy({"trainer.total_training_steps"}, "run.steps");
    reader_.copy({"trainer.experiment_name"}, "run.name");
  }

  /// A file may have the keys of models that its algorithm does not use.
  void leave_out_absent() {
    const auto& layout = recipe_.layout;
    if (layout.ref.count == 0)
      reader_.irrelevant({"actor_rollout_ref.ref."});
    if (layout.critic.count == 0)
      reader_.irrelevant({"critic."});
  }

  void leave_out() {
    const std::string own = "our strategies have no such degree";
    for (const char* size : {"actor_rollout_ref.actor.fsdp_config.fsdp_size",
                             "actor_rollout_ref.ref.fsdp_config.fsdp_size",
                             "critic.model.fsdp_config.fsdp_size"})
      reader_.not_modelled({size}, "planned as sharded over all devices", "-1");
    for (const std::string section :
         {"actor_rollout_ref.actor", "actor_rollout_ref.ref", "critic"}) {
      for (const std::string key :
           {".megatron.expert_model_parallel_size",
            ".megatron.expert_tensor_parallel_size",
            ".megatron.virtual_pipeline_model_parallel_size"})
        reader_.not_modelled({(section + key).c_str()}, own, "1");
      for (const std::string key : {".megatron.context_parallel_size",
                                    ".ulysses_sequence_parallel_size"})
        reader_.not_modelled({(section + key).c_str()},
                             "planned without context parallelism", "1");
    }
    reader_.not_modelled({"actor_rollout_ref.model.lora_rank",
                          "actor_rollout_ref.model.lora.rank"},
                         "all weights are planned as trained");
    reader_.not_modelled({"actor_rollout_ref.rollout.multi_turn.enable",
                          "actor_rollout_ref.rollout.mode"},
                         "planned as one turn", "sync");
    reader_.not_modelled({"algorithm.filter_groups.enable"},
                         "one round of generation is planned");
    reader_.not_modelled({"actor_rollout_ref.rollout.data_parallel_size",
                          "actor_rollout_ref.rollout.expert_parallel_size"},
                         own, "1");
    reader_.not_modelled({"actor_rollout_ref.rollout.enforce_eager"},
                         "decoding is planned with the hardware file's graphs");
    reader_.irrelevant({"data.",
                        "trainer.",
                        "algorithm.",
                        "custom_reward_function.",
                        "reward_",
                        "reward.",
                        "ray_",
                        "global_profiler",
                        "config_",
                        "hydra.",
                        "actor_rollout_ref.rollout.",
                        "actor_rollout_ref.actor.optim.",
                        "actor_rollout_ref.actor.clip_",
                        "actor_rollout_ref.actor.loss_",
                        "actor_rollout_ref.actor.kl_",
                        "actor_rollout_ref.model.use_",
                        "actor_rollout_ref.model.override_config",
                        "actor_rollout_ref.model.trust_",
                        "critic.optim.",
                        "critic.cliprange",
                        "critic.model.use_",
                        "critic.loss_"});
    reader_.irrelevant_endings({"grad_offload", "grad_clip",
                                "use_dist_checkpointing", "use_torch_compile",
                                "override_transformer_config.apply_rope_fusion",
                                "wrap_policy", "enable_gradient_checkpointing",
                                "shuffle", "checkpoint"});
  }

  ForeignReader& reader_;
  Recipe& recipe_;
  StepSizes sizes_;
  bool megatron_ = false;
};

} // namespace

void read_verl(ForeignReader& reader, Recipe& recipe) {
  VerlReader(reader, recipe).read();
}

} // namespace troupe::plans
