// OpenRLHF: a group of devices for each model and engines of vLLM beside them,
// or (`--colocate_all_models`) all of them on the same devices. DeepSpeed
// trains.
#include "plans/foreign/recipe_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

/// Beginnings of keys that change neither times nor memory.
constexpr const char* openrlhf_irrelevant[] = {"save_",
                                               "ckpt_",
                                               "max_ckpt",
                                               "load_checkpoint",
                                               "prompt_data",
                                               "input_key",
                                               "label_key",
                                               "apply_chat_template",
                                               "normalize_reward",
                                               "packing_samples",
                                               "use_wandb",
                                               "wandb",
                                               "use_tensorboard",
                                               "logging_",
                                               "eval_",
                                               "max_samples",
                                               "num_episodes",
                                               "gamma",
                                               "lambd",
                                               "bf16",
                                               "param_dtype",
                                               "flash_attn",
                                               "attn_implementation",
                                               "eps_clip",
                                               "kl_estimator",
                                               "use_kl_estimator",
                                               "seed",
                                               "vllm_sync_backend",
                                               "actor_init_on_gpu",
                                               "entropy_loss_coef",
                                               "dynamic_filtering_reward",
                                               "enable_vllm_is",
                                               "vllm_is",
                                               "vllm_enable_is",
                                               "use_icepop",
                                               "stop_properly",
                                               "overlong_",
                                               "ring_head_stride",
                                               "gradient_checkpointing",
                                               "lora_alpha",
                                               "target_modules",
                                               "disable_",
                                               "aux_loss",
                                               "l2",
                                               "lr_warmup",
                                               "max_norm",
                                               "zpg",
                                               "overlap_comm",
                                               "enable_prefix",
                                               "address",
                                               "runtime_env",
                                               "no_wait",
                                               "prompt_split",
                                               "reward_clip"};

class OpenRlhfReader {
public:
  OpenRlhfReader(ForeignReader& reader, Recipe& recipe)
    : reader_(reader),
      recipe_(recipe) {}

  void read() {
    algorithm();
    sizes();
    models();
    layout();
    micro_batches();
    settings();
    leave_out();
  }

private:
  void algorithm() {
    const auto word = reader_.text({"advantage_estimator"}, "gae",
                                   "workflow, algorithm.advantage");
    set_estimator(recipe_, word, {});
    const auto coef
      = reader_.number({"init_kl_coef"}, 0.01, "algorithm.kl_coef");
    const bool in_loss
      = reader_.flag({"use_kl_loss"}, false, "algorithm.kl_in");
    set_kl(recipe_, coef == 0 ? "none" : in_loss ? "loss" : "reward");
    if (coef != 0)
      recipe_.work.set("algorithm.kl_coef", fmt::format("{}", coef));
    recipe_.work.set("algorithm.old_logprobs", "recompute");
  }

  void sizes() {
    sizes_.prompts
      = reader_.integer({"rollout_batch_size"}, 1024, "data.batch_size");
    sizes_.samples_a_prompt
      = reader_.count({"n_samples_per_prompt"}, 1, "rollout.n");
    sizes_.max_prompt
      = reader_.integer({"prompt_max_len"}, 1024, "data.max_prompt_tokens");
    sizes_.max_response = reader_.integer(
      {"generate_max_len", "max_new_tokens"}, 1024, "rollout.max_new_tokens");
    sizes_.samples_an_update
      = reader_.integer({"train_batch_size"}, 128, "algorithm.mini_batches");
    set_sizes(recipe_, sizes_);
    reader_.copy({"max_epochs"}, "algorithm.epochs");
  }

  void models() {
    const auto name
      = reader_.model({"pretrain", "model_name_or_path"}, "models.actor.path");
    set_model(recipe_, "actor", name);
    const auto reward
      = reader_.find_text({"reward_pretrain"}, "models.reward.path");
    const bool asks
      = reader_.find_text({"remote_rm_url", "agent_func_path"}, "reward.kind")
          .has_value();
    const bool has_model = reward && !asks;
    recipe_.work.set("reward.kind", has_model ? "model" : "rule");
    if (has_model)
      set_model(recipe_, "reward", *reward);
    if (recipe_.work.workflow == "ppo")
      set_model(recipe_, "critic",
                reader_.find_text({"critic_pretrain"}, "models.critic.path")
                  .value_or(has_model ? *reward : name));
  }

  /// Returns the devices of a model's group.
  std::uint32_t group(const std::string& model) {
    const auto nodes = model + "_num_nodes",
               each = model + "_num_gpus_per_node";
    const auto meaning = "devices of " + model;
    most_a_node_
      = std::max(most_a_node_, reader_.count({each.c_str()}, 8, meaning));
    return reader_.count({nodes.c_str()}, 1, meaning)
           * reader_.count({each.c_str()}, 8, meaning);
  }

  void layout() {
    const auto engines = reader_.count({"vllm_num_engines"}, 0,
                                       "devices of actor_gen", /*least=*/0);
    const auto tp = reader_.count({"vllm_tensor_parallel_size"}, 1,
                                  "strategy of actor_gen");
    auto& out = recipe_.layout;
    const bool all
      = reader_.flag({"colocate_all_models"}, false, "placement of all calls");
    const bool actor_ref
      = all || reader_.flag({"colocate_actor_ref"}, false, "placement of ref");
    const bool critic_reward = all
                               || reader_.flag({"colocate_critic_reward"},
                                               false, "placement of reward");
    const auto take = [&](std::uint32_t count) {
      const auto first = next_;
      next_ += count;
      return first;
    };
    const auto actor = group("actor");
    const auto engine_devices = engines == 0 ? actor : engines * tp;
    const bool async = reader_.flag({"async_train"}, false, "lag.actor_gen");
    // engines that generate while others train cannot share their devices
    const bool own_engines = engines > 0 && (!all || async);
    const auto first_engine = own_engines ? take(engine_devices) : 0;
    out.actor = trained(take(actor), actor);
    out.generation
      = generation_part(reader_, {"vllm_tensor_parallel_size"},
                        own_engines ? first_engine : out.actor.first,
                        own_engines ? engine_devices : actor, tp);
    place_others(actor_ref, critic_reward, all, take);
    const auto devices = next_;
    recipe_.work.devices_per_node
      = std::min(devices, std::max(most_a_node_, std::min(devices, 8U)));
    recipe_.work.nodes = (devices + recipe_.work.devices_per_node - 1)
                         / recipe_.work.devices_per_node;
    if (engines == 0)
      out.engine.clear();
    if (async)
      set_lag(recipe_, 1);
    engine(own_engines);
  }

  template <class Take>
  void place_others(bool actor_ref, bool critic_reward, bool all,
                    const Take& take) {
    auto& out = recipe_.layout;
    const auto& work = recipe_.work;
    if (work.workflow == "ppo") {
      const auto devices = group("critic");
      out.critic = trained(all ? out.actor.first : take(devices), devices);
    }
    const bool offloads
      = reader_.flag({"ref_reward_offload"}, false, "roles.ref.offload");
    if (work.get("algorithm.kl_in") != "none") {
      const auto devices = group("ref");
      out.ref = frozen(actor_ref ? out.actor.first : take(devices), devices,
                       offloads);
    }
    if (work.models.contains("reward")) {
      const auto devices = group("reward");
      const bool beside = critic_reward && out.critic.count > 0;
      out.reward = frozen(all      ? out.actor.first
                          : beside ? out.critic.first
                                   : take(devices),
                          devices, offloads);
    }
  }

  void engine(bool own_engines) {
    auto& out = recipe_.layout;
    out.engine_share = reader_.number({"vllm_gpu_memory_utilization"}, 0.95,
                                      "rollout.kv_cache_gb");
    const bool asked = reader_.flag({"vllm_enable_sleep"}, false,
                                    "the engine leaves the devices");
    out.engine_sleeps = asked || !own_engines;
    // asleep, DeepSpeed's states are in host memory
    const bool sleeps
      = reader_.flag({"deepspeed_enable_sleep", "fsdp2_enable_sleep"}, false,
                     "roles.actor.offload");
    for (auto* part : {&out.actor, &out.critic})
      if (part->count > 0) {
        part->offload_optimizer |= sleeps;
        part->offload_weights |= sleeps;
      }
  }

  LayoutPart trained(std::uint32_t first, std::uint32_t count) {
    const auto zero = reader_.integer({"zero_stage"}, 2, "strategies (z)");
    const auto tp
      = reader_.count({"ds_tensor_parallel_size"}, 1, "strategies (t)");
    auto part
      = training_part(reader_, {"ds_tensor_parallel_size"}, first, count,
                      {.tp = tp, .zero = static_cast<int>(zero)});
    part.offload_optimizer
      = reader_.flag({"adam_offload"}, false, "roles.actor.offload");
    return part;
  }

  LayoutPart frozen(std::uint32_t first, std::uint32_t count, bool offloads) {
    // below stage 3 each device has all of its tensor slice
    auto part = frozen_part(trained(first, count));
    part.offload_weights = offloads;
    return part;
  }

  void micro_batches() {
    const bool dynamic
      = reader_.flag({"use_dynamic_batch"}, false, "micro_batch_tokens");
    const auto tokens = reader_.find_integer({"train_max_tokens_per_gpu"},
                                             "micro_batch_tokens");
    const auto rollout_tokens = reader_.find_integer(
      {"rollout_max_tokens_per_gpu"}, "micro_batch_tokens");
    const auto train
      = reader_.integer({"micro_train_batch_size"}, 4, "micro_batch_tokens")
        * sizes_.sequence();
    const auto rollout
      = reader_.integer({"micro_rollout_batch_size"}, 8, "micro_batch_tokens")
        * sizes_.sequence();
    auto& out = recipe_.layout;
    out.actor.micro_batch_tokens = dynamic && tokens ? *tokens : train;
    out.critic.micro_batch_tokens = out.actor.micro_batch_tokens;
    const auto scored
      = dynamic ? rollout_tokens.value_or(tokens.value_or(rollout)) : rollout;
    out.ref.micro_batch_tokens = out.reward.micro_batch_tokens = scored;
  }

  void settings() {
    reader_.copy({"actor_learning_rate"}, "models.actor.optimizer.lr");
    if (recipe_.work.workflow == "ppo")
      reader_.copy({"critic_learning_rate"}, "models.critic.optimizer.lr");
    reader_.copy({"temperature"}, "rollout.temperature");
    reader_.copy({"top_p"}, "rollout.top_p");
    const bool recompute
      = reader_.flag({"gradient_checkpointing"}, false, "algorithm.recompute");
    recipe_.work.set("algorithm.recompute", recompute ? "true" : "false");
  }

  void leave_out() {
    reader_.not_modelled({"ring_attn_size"},
                         "planned without context parallelism", "1");
    reader_.not_modelled({"lora_rank"}, "all weights are planned as trained");
    reader_.not_modelled({"load_in_4bit"}, "weights are planned in 16 bits");
    reader_.not_modelled({"dynamic_filtering"},
                         "one round of generation is planned");
    reader_.not_modelled({"partial_rollout"}, "no response spans two steps");
    reader_.not_modelled({"enforce_eager"},
                         "decoding is planned with the hardware file's graphs");
    reader_.irrelevant(openrlhf_irrelevant);
  }

  ForeignReader& reader_;
  Recipe& recipe_;
  StepSizes sizes_;
  std::uint32_t next_ = 0;
  std::uint32_t most_a_node_ = 1;
};

} // namespace

void read_openrlhf(ForeignReader& reader, Recipe& recipe) {
  OpenRlhfReader(reader, recipe).read();
}

} // namespace troupe::plans
