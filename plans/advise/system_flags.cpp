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
       {rollout + "gpu_memory_utilization", share_text(layout.engine_share)}};
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
  const bool all = layout.is_colocated();
  const auto beside = [](const LayoutPart& part, const LayoutPart& other) {
    return part.count > 0 && part.first == other.first
           && part.count == other.count;
  };
  flags.push_back({"--colocate_all_models", boolean(all)});
  flags.push_back({"--colocate_actor_ref",
                   boolean(!all && beside(layout.ref, layout.actor))});
  flags.push_back({"--colocate_critic_reward",
                   boolean(!all && beside(layout.reward, layout.critic))});
  const auto& engine = layout.generation.strategy;
  flags.push_back({"--vllm_num_engines", std::to_string(engine.dp)});
  flags.push_back({"--vllm_tensor_parallel_size", std::to_string(engine.tp)});
  flags.push_back(
    {"--vllm_gpu_memory_utilization", share_text(layout.engine_share)});
  flags.push_back({"--vllm_enable_sleep", boolean(all)});
  flags.push_back(
    {"--zero_stage", layout.actor.strategy.zero == Zero::z3 ? "3" : "2"});
  flags.push_back(
    {"--ds_tensor_parallel_size", std::to_string(layout.actor.strategy.tp)});
  flags.push_back({"--adam_offload", boolean(layout.actor.offload_optimizer)});
  flags.push_back(
    {"--ref_reward_offload", boolean(layout.ref.offload_weights)});
  return flags;
}

std::string host_or_none(bool offload) {
  return offload ? "cpu" : "none";
}

Flags trl_flags(const SystemLayout& layout, const Workload&) {
  const auto& engine = layout.generation.strategy;
  const bool server = layout.is_split();
  Flags flags = {{"--num_processes", std::to_string(layout.actor.count)},
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
  if (split && work.nodes > 1)
    flags.push_back(
      {generation + "colocated.resources.num_nodes",
       std::to_string(layout.generation.count / work.devices_per_node)});
  else if (split)
    flags.push_back({generation + "colocated.resources.gpus_per_node",
                     std::to_string(layout.generation.count)});
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
           fmt::format("sglang:{}{}{}:{}", degrees(layout.generation.strategy),
                       layout.is_split() ? "+" : "|",
                       megatron ? "megatron" : "fsdp", degrees(train))},
          {"sglang.mem_fraction_static", share_text(layout.engine_share)},
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
    {"--enable_hybrid_engine", "True"},
    {"--inference_tp_size", std::to_string(layout.generation.strategy.tp)},
    {"--offload", boolean(layout.actor.offload_optimizer)},
    {"--offload_reference_model", boolean(layout.ref.offload_weights)},
    {"--num_gpus", std::to_string(work.devices_per_node)},
    {"--num_nodes", std::to_string(work.nodes)}};
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

Flags changed_flags(System system, const SystemLayout& own,
                    const SystemLayout& layout, const Workload& work) {
  const auto before = flags_of(system, own, work);
  auto after = flags_of(system, layout, work);
  std::erase_if(after, [&](const SystemFlag& flag) {
    return std::ranges::find(before, flag) != before.end();
  });
  return after;
}

} // namespace troupe::plans
