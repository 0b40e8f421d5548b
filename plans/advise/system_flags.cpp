// Layouts as flags of each system.
#include "plans/advise/expressible.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

using Flags = std::vector<SystemFlag>;

std::string boolean(bool value) {
  return value ? "True" : "False";
}

/// A flag of argparse's store_true, which takes no value.
SystemFlag switched(const std::string& key, bool on) {
  return {key, boolean(on), /*is_switch=*/true};
}

std::string share_text(double share) {
  return fmt::format("{:.2f}", share);
}

Flags verl_flags(const SystemLayout& layout, const Workload& work) {
  const bool megatron
    = layout.actor.strategy.zero != Zero::z3 && layout.actor.count > 1;
  const std::string rollout = "actor_rollout_ref.rollout.";
  Flags flags
    = {{"actor_rollout_ref.actor.strategy", megatron ? "megatron" : "fsdp"},
       {rollout + "tensor_model_parallel_size",
        std::to_string(layout.generation.strategy.tp)},
       {rollout + "pipeline_model_parallel_size",
        std::to_string(layout.generation.strategy.pp)},
       {rollout + "gpu_memory_utilization", share_text(layout.engine_share)},
       {rollout + "free_cache_engine", boolean(layout.engine_sleeps)}};
  const auto model = [&](const std::string& section, const std::string& fsdp,
                         const LayoutPart& part, bool trains) {
    if (part.count == 0)
      return;
    const auto backend = megatron ? section + ".megatron." : fsdp + ".";
    if (megatron) {
      flags.push_back({backend + "tensor_model_parallel_size",
                       std::to_string(part.strategy.tp)});
      flags.push_back({backend + "pipeline_model_parallel_size",
                       std::to_string(part.strategy.pp)});
    }
    flags.push_back({backend + "param_offload", boolean(part.offload_weights)});
    if (trains)
      flags.push_back(
        {backend + "optimizer_offload", boolean(part.offload_optimizer)});
  };
  const std::string actor = "actor_rollout_ref.actor";
  const std::string ref = "actor_rollout_ref.ref";
  model(actor, actor + ".fsdp_config", layout.actor, true);
  model(ref, ref + ".fsdp_config", layout.ref, false);
  model("critic", "critic.model.fsdp_config", layout.critic, true);
  model("reward_model", "reward_model.model.fsdp_config", layout.reward, false);
  flags.push_back(
    {"trainer.n_gpus_per_node", std::to_string(work.devices_per_node)});
  flags.push_back({"trainer.nnodes", std::to_string(work.nodes)});
  return flags;
}

std::vector<const LayoutPart*> models_of(const SystemLayout& layout) {
  std::vector<const LayoutPart*> models;
  for (const auto* part :
       {&layout.actor, &layout.critic, &layout.ref, &layout.reward})
    if (part->count > 0)
      models.push_back(part);
  return models;
}

bool is_beside(const LayoutPart& part, const LayoutPart& other) {
  return part.count > 0 && part.first == other.first
         && part.count == other.count;
}

/// Returns whether OpenRLHF has all models on the same devices; those of the
/// engines are apart in an asynchronous run.
bool are_together(const SystemLayout& layout) {
  const auto models = models_of(layout);
  const bool models_are
    = std::ranges::all_of(models, [&](const LayoutPart* part) {
        return is_beside(*part, layout.actor);
      });
  const bool needs_the_flag = layout.critic.count + layout.reward.count > 0;
  return layout.is_colocated()
         || (layout.lag > 0 && models_are && needs_the_flag);
}

Flags openrlhf_flags(const SystemLayout& layout, const Workload& work) {
  Flags flags;
  const auto group = [&](const std::string& name, const LayoutPart& part) {
    if (part.count == 0)
      return;
    const auto each = std::min(part.count, work.devices_per_node);
    flags.push_back({"--" + name + "_num_nodes",
                     std::to_string(std::max(1U, part.count / each))});
    flags.push_back({"--" + name + "_num_gpus_per_node", std::to_string(each)});
  };
  group("actor", layout.actor);
  group("critic", layout.critic);
  group("ref", layout.ref);
  group("reward", layout.reward);
  const bool all = are_together(layout);
  const auto& engine = layout.generation.strategy;
  const bool is_z3
    = std::ranges::any_of(models_of(layout), [](const LayoutPart* part) {
        return part->strategy.zero == Zero::z3;
      });
  const bool sleeps = layout.actor.offload_weights;
  const auto engines = layout.engine.empty() ? 0 : engine.dp;
  for (const auto& flag : Flags{
         switched("--colocate_all_models", all),
         switched("--colocate_actor_ref",
                  !all && is_beside(layout.ref, layout.actor)),
         switched("--colocate_critic_reward",
                  !all && is_beside(layout.reward, layout.critic)),
         switched("--async_train", layout.lag > 0),
         {"--vllm_num_engines", std::to_string(engines)},
         {"--vllm_tensor_parallel_size", std::to_string(engine.tp)},
         {"--vllm_gpu_memory_utilization", share_text(layout.engine_share)},
         switched("--vllm_enable_sleep", all && layout.engine_sleeps),
         switched("--deepspeed_enable_sleep", sleeps),
         {"--zero_stage", is_z3 ? "3" : "2"},
         {"--ds_tensor_parallel_size",
          std::to_string(layout.actor.strategy.tp)},
         switched("--adam_offload", layout.actor.offload_optimizer && !sleeps),
         switched("--ref_reward_offload",
                  layout.ref.offload_weights || layout.reward.offload_weights)})
    flags.push_back(flag);
  return flags;
}

std::string host_or_none(bool offload) {
  return offload ? "cpu" : "none";
}

Flags trl_flags(const SystemLayout& layout, const Workload&) {
  const auto& engine = layout.generation.strategy;
  const bool server = layout.is_split();
  Flags flags = {{"--num_processes", std::to_string(layout.actor.count)},
                 {"--use_vllm", boolean(!layout.engine.empty())},
                 {"--vllm_mode", server ? "server" : "colocate"}};
  if (server) {
    flags.push_back(
      {"trl vllm-serve --tensor_parallel_size", std::to_string(engine.tp)});
    flags.push_back(
      {"trl vllm-serve --data_parallel_size", std::to_string(engine.dp)});
    flags.push_back({"trl vllm-serve --gpu_memory_utilization",
                     share_text(layout.engine_share)});
  } else {
    flags.push_back({"--vllm_tensor_parallel_size", std::to_string(engine.tp)});
    flags.push_back(
      {"--vllm_gpu_memory_utilization", share_text(layout.engine_share)});
  }
  const auto zero = layout.actor.strategy.zero;
  flags.push_back({"deepspeed_config.zero_stage", zero == Zero::z3   ? "3"
                                                  : zero == Zero::z1 ? "2"
                                                                     : "0"});
  flags.push_back({"deepspeed_config.offload_optimizer_device",
                   host_or_none(layout.actor.offload_optimizer)});
  flags.push_back({"deepspeed_config.offload_param_device",
                   host_or_none(layout.actor.offload_weights)});
  return flags;
}

Flags nemo_flags(const SystemLayout& layout, const Workload& work) {
  const auto& train = layout.actor.strategy;
  const bool megatron = train.zero != Zero::z3 && layout.actor.count > 1;
  const auto lower
    = [](bool value) -> std::string { return value ? "true" : "false"; };
  const std::string generation = "policy.generation.";
  const bool split = layout.is_split();
  Flags flags = {{"policy.megatron_cfg.enabled", lower(megatron)},
                 {"policy.dtensor_cfg.enabled", lower(!megatron)},
                 {generation + "vllm_cfg.tensor_parallel_size",
                  std::to_string(layout.generation.strategy.tp)},
                 {generation + "vllm_cfg.pipeline_parallel_size",
                  std::to_string(layout.generation.strategy.pp)},
                 {generation + "vllm_cfg.gpu_memory_utilization",
                  share_text(layout.engine_share)},
                 {generation + "colocated.enabled", lower(!split)},
                 {"policy.dtensor_cfg.cpu_offload",
                  lower(!megatron && layout.actor.offload_weights)}};
  if (megatron) {
    flags.push_back({"policy.megatron_cfg.tensor_model_parallel_size",
                     std::to_string(train.tp)});
    flags.push_back({"policy.megatron_cfg.pipeline_model_parallel_size",
                     std::to_string(train.pp)});
  } else {
    flags.push_back(
      {"policy.dtensor_cfg.tensor_parallel_size", std::to_string(train.tp)});
  }
  if (split) {
    const auto each = std::min(layout.generation.count, work.devices_per_node);
    const auto resources = generation + "colocated.resources.";
    flags.push_back({resources + "num_nodes",
                     std::to_string(layout.generation.count / each)});
    flags.push_back({resources + "gpus_per_node", std::to_string(each)});
  }
  flags.push_back({"grpo.async_grpo.enabled", lower(layout.lag > 0)});
  if (layout.lag > 0)
    flags.push_back(
      {"grpo.async_grpo.max_trajectory_age_steps", std::to_string(layout.lag)});
  flags.push_back({"cluster.num_nodes", std::to_string(work.nodes)});
  flags.push_back(
    {"cluster.gpus_per_node", std::to_string(work.devices_per_node)});
  return flags;
}

Flags areal_flags(const SystemLayout& layout, const Workload& work) {
  const auto degrees = [](const Strategy& strategy) {
    return fmt::format("d{}p{}t{}", strategy.dp, strategy.pp, strategy.tp);
  };
  const auto& train = layout.actor.strategy;
  const bool megatron = train.zero != Zero::z3 && layout.actor.count > 1;
  return {{"allocation_mode",
           fmt::format("{}:{}{}{}:{}", layout.engine,
                       degrees(layout.generation.strategy),
                       layout.is_split() ? "+" : "|",
                       megatron ? "megatron" : "fsdp", degrees(train))},
          {layout.engine == "vllm" ? "vllm.gpu_memory_utilization"
                                   : "sglang.mem_fraction_static",
           share_text(layout.engine_share)},
          {"rollout.max_head_offpolicyness", std::to_string(layout.lag)},
          {"cluster.n_nodes", std::to_string(work.nodes)},
          {"cluster.n_gpus_per_node", std::to_string(work.devices_per_node)}};
}

Flags deepspeed_chat_flags(const SystemLayout& layout, const Workload& work) {
  const auto stage = [](const LayoutPart& part) -> std::string {
    return part.strategy.zero == Zero::z3   ? "3"
           : part.strategy.zero == Zero::z1 ? "2"
                                            : "0";
  };
  return {
    {"--actor_zero_stage", stage(layout.actor)},
    {"--critic_zero_stage", stage(layout.critic)},
    switched("--enable_hybrid_engine", !layout.engine.empty()),
    {"--inference_tp_size", std::to_string(layout.generation.strategy.tp)},
    switched("--offload", layout.actor.offload_optimizer),
    switched("--offload_reference_model", layout.ref.offload_weights),
    {"--num_gpus", std::to_string(work.devices_per_node)},
    {"--num_nodes", std::to_string(work.nodes)}};
}

/// Returns whether the recipe's files have a switch.
bool is_on(const Recipe& own, const std::string& flag) {
  const auto key = flag.substr(flag.find_first_not_of('-'));
  return std::ranges::any_of(own.values, [&](const ReadValue& read) {
    const auto& value = read.value.value;
    return read.value.key == key && value != "False" && value != "false"
           && value != "0";
  });
}

} // namespace

Flags flags_of(System system, const SystemLayout& layout,
               const Workload& work) {
  switch (system) {
  case System::verl:
    return verl_flags(layout, work);
  case System::openrlhf:
    return openrlhf_flags(layout, work);
  case System::trl:
    return trl_flags(layout, work);
  case System::nemo_rl:
    return nemo_flags(layout, work);
  case System::areal:
    return areal_flags(layout, work);
  case System::deepspeed_chat:
    return deepspeed_chat_flags(layout, work);
  }
  return {};
}

std::string print(const SystemFlag& flag) {
  if (flag.is_switch)
    return (flag.value == boolean(true) ? "" : "remove ") + flag.key;
  const bool is_argument
    = flag.key.starts_with("--") || flag.key.starts_with("trl");
  // a shell takes | for a pipe
  const std::string quote = flag.value.find('|') == flag.value.npos ? "" : "'";
  return flag.key + (is_argument ? " " : "=") + quote + flag.value + quote;
}

Flags changed_flags(const Recipe& own, const SystemLayout& layout,
                    const Workload& work) {
  const auto before = flags_of(own.system, own.layout, own.work);
  auto after = flags_of(own.system, layout, work);
  std::erase_if(after, [&](const SystemFlag& flag) {
    // several switches can mean one layout: what counts is what the file has
    return flag.is_switch
             ? is_on(own, flag.key) == (flag.value == boolean(true))
             : std::ranges::find(before, flag) != before.end();
  });
  return after;
}

} // namespace troupe::plans
