// DeepSpeed-Chat, step 3: four models on all devices, ZeRO, and the hybrid
// engine that gathers the actor into a tensor-parallel engine for generation.
#include "plans/foreign/recipe_parts.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

class DeepSpeedChatReader {
public:
  DeepSpeedChatReader(ForeignReader& reader, Recipe& recipe)
    : reader_(reader),
      recipe_(recipe) {}

  void read() {
    auto& work = recipe_.work;
    work.nodes = reader_.count({"num_nodes"}, 1, "cluster.nodes");
    work.devices_per_node
      = reader_.count({"num_gpus"}, 8, "cluster.devices_per_node");
    models();
    sizes();
    layout();
    texts();
    leave_out();
  }

private:
  void models() {
    set_model(recipe_, "actor",
              reader_.model({"actor_model_name_or_path"}, "models.actor.path"));
    const auto critic
      = reader_.model({"critic_model_name_or_path"}, "models.critic.path");
    set_model(recipe_, "critic", critic);
    set_model(recipe_, "reward", critic); // the same file serves both
    set_estimator(recipe_, "gae", {});
    set_kl(recipe_, "reward");
    recipe_.work.set("reward.kind", "model");
    // the experience is scored by the actor itself, after its generation
    recipe_.work.set("algorithm.old_logprobs", "recompute");
  }

  void sizes() {
    const auto devices = recipe_.work.num_devices();
    const auto generated = reader_.integer(
      {"per_device_generation_batch_size", "per_device_train_batch_size"}, 16,
      "data.batch_size");
    const auto batches = reader_.integer(
      {"generation_batches", "generation_batch_numbers"}, 1, "data.batch_size");
    const auto trained = reader_.integer(
      {"per_device_training_batch_size", "per_device_mini_train_batch_size"},
      16, "algorithm.mini_batches");
    const auto accumulated = reader_.integer({"gradient_accumulation_steps"}, 1,
                                             "algorithm.mini_batches");
    sizes_.prompts = generated * batches * devices;
    sizes_.samples_an_update = trained * accumulated * devices;
    sizes_.max_prompt
      = reader_.integer({"max_prompt_seq_len"}, 256, "data.max_prompt_tokens");
    sizes_.max_response
      = reader_.integer({"max_answer_seq_len"}, 256, "rollout.max_new_tokens");
    set_sizes(recipe_, sizes_);
    reader_.copy({"ppo_epochs"}, "algorithm.epochs");
    micro_batch_ = trained * sizes_.sequence();
  }

  LayoutPart part(ForeignKeys stage_key, std::int64_t stage, bool offload) {
    const auto zero = reader_.integer(stage_key, stage, "strategies (z)");
    auto part = training_part(reader_, stage_key, 0, recipe_.work.num_devices(),
                              {.zero = static_cast<int>(zero)});
    part.offload_optimizer = offload;
    part.micro_batch_tokens = micro_batch_;
    return part;
  }

  void layout() {
    auto& out = recipe_.layout;
    const bool offload
      = reader_.flag({"offload"}, false, "roles.actor.offload");
    out.actor = part({"actor_zero_stage"}, 0, offload);
    out.critic = part({"critic_zero_stage"}, 0, offload);
    const bool ref_offload
      = reader_.flag({"offload_reference_model"}, false, "roles.ref.offload");
    out.ref = frozen_part(out.actor);
    out.ref.offload_weights = ref_offload;
    out.reward = frozen_part(out.critic);
    const bool hybrid
      = reader_.flag({"enable_hybrid_engine"}, false, "placement of actor_gen");
    const auto tp
      = reader_.count({"inference_tp_size"}, 1, "strategy of actor_gen");
    out.generation
      = generation_part(reader_, {"inference_tp_size"}, 0,
                        recipe_.work.num_devices(), hybrid ? tp : 1);
    if (!hybrid)
      out.engine.clear();
    out.engine_share = 0; // the cache is what a batch needs
    const bool recompute = reader_.flag({"actor_gradient_checkpointing"}, false,
                                        "algorithm.recompute");
    recipe_.work.set("algorithm.recompute", recompute ? "true" : "false");
    reader_.copy({"actor_learning_rate"}, "models.actor.optimizer.lr");
    reader_.copy({"critic_learning_rate"}, "models.critic.optimizer.lr");
  }

  /// As many texts as prompts, each as long as a prompt with its response.
  void texts() {
    if (!reader_.find_text({"unsupervised_dataset_name"}, "data.ptx"))
      return;
    reader_.find_text({"unsupervised_dataset_config_name"}, "data.ptx");
    recipe_.work.set("data.ptx", "texts.jsonl");
    recipe_.work.set("algorithm.ptx_coef", reader_.text({"unsup_coef"}, "27.8",
                                                        "algorithm.ptx_coef"));
  }

  void leave_out() {
    reader_.not_modelled({"actor_lora_dim", "critic_lora_dim"},
                         "all weights are planned as trained");
    reader_.not_modelled({"enable_ema"}, "no averaged copy is planned");
    reader_.irrelevant({"data_",
                        "num_padding",
                        "num_train_epochs",
                        "lr_scheduler",
                        "num_warmup",
                        "seed",
                        "deepspeed",
                        "output_dir",
                        "master_",
                        "actor_weight",
                        "critic_weight",
                        "disable_",
                        "actor_lora",
                        "critic_lora",
                        "actor_dropout",
                        "critic_gradient_checkpointing",
                        "tp_gather",
                        "print_",
                        "enable_tensor",
                        "tensorboard",
                        "release_inference",
                        "unpin_actor",
                        "dtype",
                        "hostfile",
                        "max_out_tokens",
                        "align_overflow",
                        "enable_mixed"});
  }

  ForeignReader& reader_;
  Recipe& recipe_;
  StepSizes sizes_;
  std::int64_t micro_batch_ = 0;
};

} // namespace

void read_deepspeed_chat(ForeignReader& reader, Recipe& recipe) {
  DeepSpeedChatReader(reader, recipe).read();
}

} // namespace troupe::plans
