// TRL: data-parallel training by accelerate (DeepSpeed or FSDP) on all
// processes; vLLM in the same processes (`vllm_mode: colocate`) or in a server
// on devices of its own.
#include "plans/foreign/recipe_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

/// Beginnings of keys that change neither times nor memory.
constexpr const char* trl_irrelevant[] = {"output_dir",
                                          "dataset",
                                          "logging",
                                          "log_",
                                          "save_",
                                          "push_",
                                          "hub_",
                                          "report_to",
                                          "run_name",
                                          "seed",
                                          "bf16",
                                          "fp16",
                                          "torch_dtype",
                                          "dtype",
                                          "attn_implementation",
                                          "lr_scheduler",
                                          "warmup",
                                          "max_grad_norm",
                                          "weight_decay",
                                          "adam_",
                                          "optim",
                                          "eval_",
                                          "do_eval",
                                          "per_device_eval",
                                          "num_train_epochs",
                                          "system_prompt",
                                          "chat_template",
                                          "reward_weights",
                                          "epsilon",
                                          "loss_type",
                                          "scale_rewards",
                                          "mask_truncated",
                                          "overwrite",
                                          "callbacks",
                                          "benchmarks",
                                          "model_revision",
                                          "gradient_checkpointing_",
                                          "sync_ref",
                                          "vllm_server",
                                          "vllm_device",
                                          "vllm_serve.",
                                          "config_file",
                                          "config",
                                          "main_process",
                                          "machine_rank",
                                          "mixed_precision",
                                          "rdzv",
                                          "same_network",
                                          "compute_environment",
                                          "debug",
                                          "main_training",
                                          "downcast_bf16",
                                          "tpu_",
                                          "use_cpu",
                                          "deepspeed_config.",
                                          "fsdp_config.",
                                          "ddp_",
                                          "wandb",
                                          "trust_remote",
                                          "generation_kwargs",
                                          "zero3_init",
                                          "gradient_clipping",
                                          "vllm_max_model",
                                          "max_length",
                                          "resume",
                                          "remove_unused",
                                          "top_k",
                                          "min_p",
                                          "repetition_penalty",
                                          "disable_",
                                          "data_seed",
                                          "shuffle",
                                          "zero_optimization.",
                                          "train_"};

class TrlReader {
public:
  TrlReader(ForeignReader& reader, Recipe& recipe)
    : reader_(reader),
      recipe_(recipe) {}

  void read() {
    set_model(recipe_, "actor",
              reader_.model({"model_name_or_path", "model", "vllm_serve.model"},
                            "models.actor.path"));
    layout();
    sizes();
    algorithm();
    settings();
    leave_out();
  }

private:
  void layout() {
    const auto processes = reader_.count({"num_processes", "nproc_per_node"}, 8,
                                         "devices that train");
    const auto machines
      = reader_.count({"num_machines", "nnodes"}, 1, "cluster.nodes");
    const auto trainers
      = reader_.has({"num_processes"}) ? processes : processes * machines;
    const bool vllm
      = reader_.flag({"use_vllm"}, false, "generation by an engine");
    // a server was the only way until colocation came, then the default
    const bool serves
      = vllm
        && reader_.text({"vllm_mode"},
                        reader_.has({"vllm_serve.model", "vllm_server_host",
                                     "vllm_device"})
                          ? "server"
                          : "colocate",
                        "placement of actor_gen")
             == "server";
    auto& out = recipe_.layout;
    const auto engine_devices = serves ? server_devices() : 0;
    out.actor = trained(engine_devices, trainers);
    if (serves)
      out.generation
        = generation_part(reader_, {"vllm_serve.tensor_parallel_size"}, 0,
                          engine_devices, server_tp_);
    else
      out.generation
        = generation_part(reader_, {"vllm_tensor_parallel_size"}, 0, trainers,
                          reader_.count({"vllm_tensor_parallel_size"}, 1,
                                        "strategy of actor_gen"));
    if (!vllm)
      out.engine.clear();
    out.engine_sleeps = !serves;
    reader_.flag({"vllm_enable_sleep_mode"}, false,
                 "the engine leaves the devices");
    out.engine_share = reader_.number(
      {"vllm_serve.gpu_memory_utilization", "vllm_gpu_memory_utilization"},
      serves ? 0.9 : 0.3, "rollout.kv_cache_gb");
    const auto devices = trainers + engine_devices;
    recipe_.work.devices_per_node = std::min(devices, 8U);
    recipe_.work.nodes = (devices + recipe_.work.devices_per_node - 1)
                         / recipe_.work.devices_per_node;
  }

  /// An old `vllm_device` names one device; a server has its own flags.
  std::uint32_t server_devices() {
    server_tp_ = reader_.count({"vllm_serve.tensor_parallel_size"}, 1,
                               "strategy of actor_gen");
    return server_tp_
           * reader_.count({"vllm_serve.data_parallel_size"}, 1,
                           "strategy of actor_gen");
  }

  LayoutPart trained(std::uint32_t first, std::uint32_t count) {
    const auto stage = reader_.find_integer(
      {"zero_stage", "deepspeed_config.zero_stage", "zero_optimization.stage"},
      "strategies (z)");
    const bool fsdp
      = reader_.find_text({"distributed_type"}, "strategies (z)").value_or("")
        == "FSDP";
    if (!stage && !fsdp)
      reader_.assume("zero_stage", "0", "strategies (z)");
    auto part
      = training_part(reader_, {"zero_stage"}, first, count,
                      {.zero = fsdp ? 3 : static_cast<int>(stage.value_or(0))});
    const auto in_host = [&](ForeignKeys keys) {
      const auto where = reader_.find_text(keys, "roles.actor.offload");
      return where && (*where == "cpu" || *where == "nvme" || *where == "true");
    };
    part.offload_optimizer = in_host(
      {"deepspeed_config.offload_optimizer_device", "offload_optimizer_device",
       "zero_optimization.offload_optimizer.device"});
    part.offload_weights
      = in_host({"deepspeed_config.offload_param_device",
                 "offload_param_device", "fsdp_config.fsdp_offload_params",
                 "zero_optimization.offload_param.device"});
    return part;
  }

  void sizes() {
    const auto trainers = static_cast<std::int64_t>(recipe_.layout.actor.count);
    const auto each = reader_.integer({"per_device_train_batch_size"}, 8,
                                      "micro_batch_tokens");
    const auto accumulated = reader_.integer({"gradient_accumulation_steps"}, 1,
                                             "algorithm.mini_batches");
    const auto steps
      = reader_.find_integer({"steps_per_generation"}, "data.batch_size");
    const auto generated
      = reader_.find_integer({"generation_batch_size"}, "data.batch_size");
    sizes_.samples_a_prompt
      = reader_.count({"num_generations"}, 8, "rollout.n");
    const auto samples
      = generated.value_or(each * trainers * steps.value_or(accumulated));
    sizes_.prompts
      = std::max<std::int64_t>(1, samples / sizes_.samples_a_prompt);
    sizes_.samples_an_update = each * trainers * accumulated;
    sizes_.max_prompt
      = reader_.integer({"max_prompt_length"}, 512, "data.max_prompt_tokens");
    sizes_.max_response = reader_.integer(
      {"max_completion_length", "max_new_tokens", "response_length"}, 256,
      "rollout.max_new_tokens");
    set_sizes(recipe_, sizes_);
    reader_.copy({"num_iterations", "num_ppo_epochs"}, "algorithm.epochs");
    recipe_.layout.actor.micro_batch_tokens = each * sizes_.sequence();
  }

  void algorithm() {
    set_estimator(
      recipe_,
      reader_.find_text({"advantage_estimator"}, "algorithm.advantage")
        .value_or("grpo"),
      {});
    const auto beta = reader_.number({"beta"}, 0.0, "algorithm.kl_coef");
    set_kl(recipe_, beta == 0 ? "none" : "loss");
    if (beta != 0) {
      recipe_.work.set("algorithm.kl_coef", fmt::format("{}", beta));
      recipe_.layout.ref = frozen_part(recipe_.layout.actor);
    }
    recipe_.work.set("reward.kind", "rule");
    reader_.find_text(
      {"reward_funcs", "reward_model_path", "reward_model_name_or_path"},
      "reward.kind");
  }

  void settings() {
    reader_.copy({"learning_rate"}, "models.actor.optimizer.lr");
    reader_.copy({"temperature"}, "rollout.temperature");
    reader_.copy({"top_p"}, "rollout.top_p");
    if (const auto steps = reader_.find_integer({"max_steps"}, "run.steps");
        steps && *steps > 0)
      recipe_.work.set("run.steps", std::to_string(*steps));
    const bool recompute
      = reader_.flag({"gradient_checkpointing"}, true, "algorithm.recompute");
    recipe_.work.set("algorithm.recompute", recompute ? "true" : "false");
  }

  void leave_out() {
    reader_.not_modelled({"use_peft", "lora_r"},
                         "all weights are planned as trained");
    reader_.not_modelled({"load_in_4bit", "load_in_8bit"},
                         "weights are planned in 16 bits");
    reader_.not_modelled({"context_parallel_size", "cp_size"},
                         "planned without context parallelism", "1");
    reader_.irrelevant(trl_irrelevant);
  }

  ForeignReader& reader_;
  Recipe& recipe_;
  StepSizes sizes_;
  std::uint32_t server_tp_ = 1;
};

} // namespace

void read_trl(ForeignReader& reader, Recipe& recipe) {
  TrlReader(reader, recipe).read();
}

} // namespace troupe::plans
