#include "config/base/error.hpp"
#include "plans/check/plan_check.hpp"
#include "plans/presets/presets.hpp"
#include "plans/weights/replicas.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/support.hpp"
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <bit>

using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

ModelShape preset_shape(std::int64_t layers, std::int64_t hidden) {
  return {.family = "llama",
          .vocab_size = 32000,
          .hidden_size = hidden,
          .num_layers = layers,
          .num_heads = hidden / 128,
          .num_kv_heads = hidden / 128,
          .head_dim = 128,
          .intermediate_size = hidden * 11 / 4,
          .max_positions = 4096,
          .rope = {},
          .windowed_layers = {},
          .eos = {}};
}

PresetFacts facts_of(const Workflow& workflow, const ModelShape& shape) {
  PresetFacts facts{.device_memory_bytes = 80'000'000'000};
  for (const auto& role : workflow.roles) {
    facts.shapes[role.name] = shape;
    facts.shapes[role.name].scalar_head = role.scalar_head;
  }
  return facts;
}

std::string refusal(const char* name, const Workflow& workflow,
                    const Cluster& cluster) {
  return refusal_of([&] { preset(name, workflow, cluster); });
}

/// Returns "" if `name` passes the plan check or refuses with a reason.
std::string fit_mistake(const std::string& name, const Workflow& workflow,
                        const Cluster& cluster) {
  const auto facts = facts_of(workflow, preset_shape(48, 6144));
  const auto why = refusal(name.c_str(), workflow, cluster);
  if (why != "accepted")
    return why.starts_with("plan: expected ")
               && why.find(" for preset " + name) != std::string::npos
               && why.find("; try ") != std::string::npos
             ? ""
             : why;
  const auto plan = preset(name, workflow, cluster, facts);
  const CheckContext context{.workflow = workflow,
                             .plan = plan,
                             .sizes = {.samples_per_step = 1024},
                             .shapes = facts.shapes};
  const auto report = check_plan(context);
  if (parse_plan(print(plan), "printed") != plan)
    return "prints as another plan";
  return report.ok() ? ""
                     : report.errors[0].path + ": " + report.errors[0].message;
}

TEST(Presets, FitAnyDeviceCountOrNameTheReason) {
  std::vector<Cluster> clusters;
  for (const std::uint32_t nodes : {1u, 2u, 3u, 16u})
    for (const std::uint32_t on_node : {1u, 2u, 3u, 5u, 6u, 7u, 8u})
      clusters.push_back({.nodes = nodes, .devices_per_node = on_node});
  for (const auto& workflow :
       {make_ppo(), sft_workflow({}), reward_workflow({}), make_grpo()})
    for (const auto& cluster : clusters)
      for (const auto& name : preset_names())
        EXPECT_EQ(fit_mistake(name, workflow, cluster), "")
          << name << " of " << workflow.name << " on " << cluster.nodes << "x"
          << cluster.devices_per_node;
}

TEST(Presets, DataParallelUsesEveryDeviceAndSingleUsesOne) {
  const Cluster cluster{.nodes = 2, .devices_per_node = 4};
  const auto workflow = make_ppo();
  EXPECT_EQ(preset("data_parallel", workflow, cluster).calls["rew_inf"],
            on(0, 7));
  EXPECT_EQ(preset("single", workflow, cluster).calls["rew_inf"], on(0, 0));
  EXPECT_TRUE(
    preset("single", workflow, cluster).calls["advantages"].devices.empty());
}

std::string placed_at(ExecutionPlan& plan, const std::string& call) {
  const auto& placement = plan.calls.at(call);
  return fmt::format("{} {}", print_devices(placement.devices),
                     to_string(placement.strategy));
}

TEST(Presets, DeepSpeedChatShardsTrainingAndGathersForGeneration) {
  auto plan = preset("deepspeed_chat", make_ppo(), {.devices_per_node = 8});
  EXPECT_EQ(placed_at(plan, "actor_gen"), "0-7 d4t2");
  EXPECT_EQ(placed_at(plan, "actor_train"), "0-7 d8z3");
  EXPECT_EQ(placed_at(plan, "rew_inf"), "0-7 d8z3");
  EXPECT_EQ(plan, preset("flattening", make_ppo(), {.devices_per_node = 8}));
  const auto verl = preset("verl", make_ppo(), {.devices_per_node = 8});
  EXPECT_EQ(verl.calls, plan.calls);
  EXPECT_TRUE(verl.roles.at("ref").offload_weights);
}

TEST(Presets, GenerationIsGatheredOnlyAsFarAsMemoryNeeds) {
  const auto workflow = make_ppo();
  const auto degree = [&](std::int64_t layers, std::int64_t hidden) {
    return preset("deepspeed_chat", workflow, {.devices_per_node = 8},
                  facts_of(workflow, preset_shape(layers, hidden)))
      .calls["actor_gen"]
      .strategy.tp;
  };
  EXPECT_EQ(degree(32, 4096), 1u);
  EXPECT_EQ(degree(80, 8192), 4u);
}

TEST(Presets, OpenRlhfHasFiveDisjointGroups) {
  auto plan = preset("openrlhf", make_ppo(), {.devices_per_node = 8});
  EXPECT_EQ(placed_at(plan, "actor_gen"), "0-3 d2t2");
  EXPECT_EQ(placed_at(plan, "actor_train"), "4 d1");
  EXPECT_EQ(placed_at(plan, "critic_inf"), "5 d1");
  EXPECT_EQ(placed_at(plan, "critic_train"), "5 d1");
  EXPECT_EQ(placed_at(plan, "rew_inf"), "6 d1");
  EXPECT_EQ(placed_at(plan, "ref_inf"), "7 d1");
  plan = preset("openrlhf_colocated", make_ppo(), {.devices_per_node = 8});
  EXPECT_EQ(placed_at(plan, "ref_inf"), placed_at(plan, "actor_train"));
  EXPECT_EQ(placed_at(plan, "rew_inf"), placed_at(plan, "critic_train"));
}

TEST(Presets, OpenRlhfCutsTheRestIntoPowersOfTwo) {
  const auto workflow = make_ppo();
  const auto actor = preset_shape(48, 8192), critic = preset_shape(32, 4096);
  auto facts = facts_of(workflow, critic);
  auto plan
    = preset("openrlhf", workflow, {.nodes = 2, .devices_per_node = 8}, facts);
  EXPECT_EQ(placed_at(plan, "actor_gen"), "0-7 d8");
  EXPECT_EQ(placed_at(plan, "actor_train"), "8-9 d2z3");
  EXPECT_EQ(placed_at(plan, "critic_train"), "10-11 d2z3");
  EXPECT_EQ(placed_at(plan, "rew_inf"), "12-13 d2z3");
  EXPECT_EQ(placed_at(plan, "ref_inf"), "14-15 d2z3");
  facts.shapes["actor"] = facts.shapes["ref"] = actor;
  plan
    = preset("openrlhf", workflow, {.nodes = 4, .devices_per_node = 8}, facts);
  EXPECT_EQ(plan.calls["actor_gen"].devices.size(), 8u);
  EXPECT_EQ(placed_at(plan, "actor_train"), "8-23 d16z3")
    << "34B on eight leave no room";
  for (const auto& [name, placement] : plan.calls)
    EXPECT_TRUE(placement.devices.empty()
                || std::has_single_bit(placement.devices.size()))
      << name;
}

TEST(Presets, OpenRlhfTakesDevicesFromGenerationForModelsThatNeedThem) {
  const auto workflow = make_ppo();
  const auto facts = facts_of(workflow, preset_shape(32, 4096));
  const Cluster node{.devices_per_node = 8};
  auto plan = preset("openrlhf", workflow, node, facts);
  EXPECT_EQ(placed_at(plan, "actor_gen"), "0-1 d2");
  EXPECT_EQ(placed_at(plan, "actor_train"), "2-3 d2z3");
  EXPECT_EQ(placed_at(plan, "critic_train"), "4-5 d2z3");
  EXPECT_EQ(placed_at(plan, "rew_inf"), "6 d1");
  EXPECT_EQ(placed_at(plan, "ref_inf"), "7 d1");
  EXPECT_TRUE(plan.roles.at("actor").offload_optimizer) << "--adam_offload";
  plan = preset("openrlhf_colocated", workflow, node, facts);
  EXPECT_EQ(placed_at(plan, "actor_gen"), "0-3 d4");
  EXPECT_EQ(placed_at(plan, "actor_train"), "4-5 d2z3");
  EXPECT_EQ(placed_at(plan, "ref_inf"), "4-5 d2z3");
}

TEST(Presets, InterleavingScoresBesideGeneration) {
  auto plan = preset("interleaving", make_ppo(), {.devices_per_node = 8});
  EXPECT_EQ(placed_at(plan, "actor_gen"), "0-3 d2t2");
  EXPECT_EQ(placed_at(plan, "rew_inf"), "4-5 d2");
  EXPECT_EQ(placed_at(plan, "ref_inf"), "6 d1");
  EXPECT_EQ(placed_at(plan, "critic_inf"), "7 d1");
  EXPECT_EQ(placed_at(plan, "actor_train"), "0-3 d4");
  EXPECT_EQ(placed_at(plan, "critic_train"), "4-7 d4");
  EXPECT_EQ(plan.calls["actor_gen"].chunks, 4);
  EXPECT_EQ(plan.calls["actor_train"].chunks, 1);
}

TEST(Presets, SeparationKeepsGenerationReplicasAndAsyncLags) {
  auto plan = preset("separation", make_ppo(), {.devices_per_node = 8});
  EXPECT_EQ(placed_at(plan, "critic_inf"), "0-3 d4");
  EXPECT_EQ(placed_at(plan, "critic_train"), "4-7 d4");
  EXPECT_TRUE(plan.replicas.at("actor@actor_gen"));
  EXPECT_TRUE(plan.replicas.at("critic@critic_inf"));
  EXPECT_EQ(plan.replicas.size(), 2u);
  auto async = preset("async", make_ppo(), {.devices_per_node = 8});
  EXPECT_EQ(async.lag_of("actor_gen"), 1u);
  async.lag.clear();
  EXPECT_EQ(async, plan);
}

TEST(Presets, MegatronHasOneLayoutOverNodes) {
  const auto workflow = make_ppo();
  auto plan = preset("megatron", workflow, {.nodes = 4, .devices_per_node = 8},
                     facts_of(workflow, preset_shape(48, 8192)));
  for (const auto* call : {"actor_gen", "rew_inf", "ref_inf", "critic_inf",
                           "actor_train", "critic_train"})
    EXPECT_EQ(placed_at(plan, call), "0-31 p4t8");
}

TEST(Presets, RealHeuristicFollowsTheRuleOfThePaper) {
  const auto workflow = make_ppo();
  auto plan
    = preset("real_heuristic", workflow, {.nodes = 2, .devices_per_node = 8},
             facts_of(workflow, preset_shape(32, 4096)));
  EXPECT_EQ(placed_at(plan, "actor_gen"), "0-15 d2p2t4");
  EXPECT_EQ(placed_at(plan, "ref_inf"), "0-15 d2p2t4");
  EXPECT_EQ(placed_at(plan, "rew_inf"), "0-7 d2t4");
  EXPECT_EQ(placed_at(plan, "critic_inf"), "8-15 d2t4");
  EXPECT_EQ(placed_at(plan, "actor_train"), "0-7 d2t4");
  EXPECT_EQ(placed_at(plan, "critic_train"), "8-15 d2t4");
}

TEST(Presets, TensorDegreesFollowTheHeads) {
  const auto workflow = make_ppo();
  auto shape = preset_shape(32, 4096);
  shape.num_heads = 6;
  shape.num_kv_heads = 3;
  auto plan = preset("megatron", workflow, {.devices_per_node = 8},
                     facts_of(workflow, shape));
  EXPECT_EQ(placed_at(plan, "actor_train"), "0-7 d8");
  plan = preset("megatron", workflow, {.devices_per_node = 6},
                facts_of(workflow, shape));
  EXPECT_EQ(placed_at(plan, "actor_train"), "0-5 t6");
}

TEST(Presets, RefusalsNameTheReasonAndAWayOut) {
  const Cluster two{.devices_per_node = 2};
  EXPECT_EQ(refusal("openrlhf", make_ppo(), two),
            "plan: expected at least 5 devices for preset openrlhf, one for "
            "each of its 5 groups, got 2; try deepspeed_chat");
  EXPECT_EQ(refusal("openrlhf", make_ppo(), {.devices_per_node = 3}),
            "plan: expected at least 5 devices for preset openrlhf, one for "
            "each of its 5 groups, got 3; try openrlhf_colocated");
  EXPECT_EQ(refusal("openrlhf_colocated", make_ppo(), two),
            "plan: expected at least 3 devices for preset openrlhf_colocated, "
            "one for each of its 3 groups, got 2; try deepspeed_chat");
  EXPECT_EQ(refusal("interleaving", make_ppo(), two),
            "plan: expected at least 4 devices for preset interleaving, one "
            "for generation and one for each of 3 scoring calls, got 2; try "
            "data_parallel");
  EXPECT_EQ(refusal("separation", make_ppo(), {}),
            "plan: expected at least 2 devices for preset separation, one to "
            "train and one for the rest, got 1; try single");
  EXPECT_EQ(refusal("async", sft_workflow({}), two),
            "plan: expected a workflow with a call of kind generate for preset "
            "async, got sft, which has none; try deepspeed_chat");
  EXPECT_EQ(refusal("data_paralel", make_ppo(), two),
            "plan: expected a preset (single, data_parallel, deepspeed_chat, "
            "flattening, openrlhf, openrlhf_colocated, interleaving, "
            "separation, megatron, real_heuristic, verl, async), got "
            "'data_paralel'; try 'data_parallel'");
}

} // namespace
} // namespace troupe::plans
