// Broken plans with the exact message that a user reads, warnings, and the
// memory that a plan needs.
#include "config/base/error.hpp"
#include "plans/check/plan_check.hpp"

#include "tests/support/plans/check_case.hpp"
#include <gmock/gmock.h>

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty, ::testing::SizeIs;

namespace troupe::plans {
namespace {

ModelShape toy_shape(bool scalar_head) {
  return {.family = "llama",
          .vocab_size = 512,
          .hidden_size = 64,
          .num_layers = 4,
          .num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 16,
          .intermediate_size = 128,
          .max_positions = 256,
          .rope = {},
          .scalar_head = scalar_head,
          .windowed_layers = {},
          .eos = {}};
}

Placement placed(std::vector<Rank> devices, const char* strategy) {
  return {.devices = std::move(devices), .strategy = parse_strategy(strategy)};
}

TEST(PlanCheck, AValidPlanHasNoErrorsOrWarnings) {
  const auto report = report_of([](CheckCase&) {});
  EXPECT_TRUE(report.ok());
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_THAT(report.devices, SizeIs(4));
  require_ok(report);
}

TEST(PlanCheck, DevicesMustExist) {
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.calls["rew_inf"] = on(4, 7); }),
            "calls.rew_inf.devices: expected devices of the cluster, which has "
            "4 (0-3), got 4-7; try 0-3");
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.calls["rew_inf"] = on(3, 4); }),
            "calls.rew_inf.devices: expected devices of the cluster, which has "
            "4 (0-3), got 3-4; try 0-3");
  EXPECT_EQ(broken([](CheckCase& c) {
              c.plan = plan_all(c.workflow, on(0, 0), 1);
              c.plan.calls["rew_inf"] = on(1, 1);
            }),
            "calls.rew_inf.devices: expected devices of the cluster, which has "
            "1 (0), got 1; try 0");
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.calls["rew_inf"].devices = {}; }),
            "calls.rew_inf.devices: expected devices for a call with weights, "
            "got host; try 0-3");
  EXPECT_EQ(broken([](CheckCase& c) {
              c.plan.calls["rew_inf"] = placed({Rank{1}, Rank{0}}, "d2");
            }),
            "calls.rew_inf.devices: expected devices that ascend, each once, "
            "got 1,0; try 0-1");
  EXPECT_EQ(broken([](CheckCase& c) {
              c.plan.calls["rew_inf"] = placed({Rank{1}, Rank{1}}, "d2");
            }),
            "calls.rew_inf.devices: expected devices that ascend, each once, "
            "got 1,1; try 1");
}

TEST(PlanCheck, EveryCallIsPlacedAndNoOther) {
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.calls.erase("ref_inf"); }),
            "calls.ref_inf: expected devices for every call of workflow ppo, "
            "got nothing; try ref_inf: {devices: 0-3, strategy: d4}");
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.calls.erase("advantages"); }),
            "calls.advantages: expected devices for every call of workflow "
            "ppo, got nothing; try advantages: {devices: host}");
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.calls["rew_inff"] = on(0, 0); }),
            "calls.rew_inff: expected a call of workflow ppo, got 'rew_inff'; "
            "try 'rew_inf'");
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.calls["judge"] = on(0, 0); }),
            "calls.judge: expected a call of workflow ppo, got 'judge'; try "
            "one of actor_gen, rew_inf, ref_inf, critic_inf, advantages, "
            "actor_train, critic_train");
}

TEST(PlanCheck, OtherNamesMustExist) {
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.lag["actor_gem"] = 1; }),
            "lag.actor_gem: expected a call of workflow ppo, got 'actor_gem'; "
            "try 'actor_gen'");
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.replicas["actor@gen"] = true; }),
            "replicas.actor@gen: expected a replica of workflow ppo, got "
            "'actor@gen'; try 'actor@actor_gen'");
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.roles["reff"] = {}; }),
            "roles.reff: expected a role of workflow ppo, got 'reff'; try "
            "'ref'");
}

TEST(PlanCheck, OnlyDroppableReplicasMayBeDropped) {
  const auto dropping = [](const char* replica, auto change) {
    return broken([&](CheckCase& c) {
      c.plan = plan_apart(c.workflow);
      c.plan.replicas[replica] = false;
      change(c.plan);
    });
  };
  const auto plain = [](ExecutionPlan&) {};
  const auto said = [](const std::string& replica, const std::string& why) {
    return "replicas." + replica + ": expected {keep: true} or no line, as "
           + why + ", got {keep: false}";
  };
  EXPECT_EQ(dropping("actor@actor_gen", plain), "");
  EXPECT_EQ(
    dropping("actor@actor_train", plain),
    said("actor@actor_train", "it is the role's home, where its weights live"));
  EXPECT_EQ(
    dropping("actor@actor_gen",
             [](ExecutionPlan& plan) { plan.lag["actor_gen"] = 1; }),
    said("actor@actor_gen", "a lag needs its version in the next step"));
}

TEST(PlanCheck, StrategiesMustFitTheirDevices) {
  EXPECT_EQ(broken([](CheckCase& c) {
              c.plan.calls["rew_inf"] = placed(ranks(0, 3), "d3");
            }),
            "calls.rew_inf.strategy: expected a strategy for 4 devices (0-3), "
            "got d3, which is for 3; try d4");
  EXPECT_EQ(broken([](CheckCase& c) {
              c.plan.calls["rew_inf"] = placed(ranks(0, 3), "d4t2");
            }),
            "calls.rew_inf.strategy: expected a strategy for 4 devices (0-3), "
            "got d4t2, which is for 8; try d2t2");
  EXPECT_EQ(broken([](CheckCase& c) {
              c.plan.calls["rew_inf"] = placed(ranks(0, 2), "t2");
            }),
            "calls.rew_inf.strategy: expected a strategy for 3 devices (0-2), "
            "got t2, which is for 2; try d3");
  EXPECT_EQ(broken([](CheckCase& c) {
              c.plan.calls["rew_inf"] = placed(ranks(0, 1), "d1");
            }),
            "calls.rew_inf.strategy: expected a strategy for 2 devices (0-1), "
            "got d1, which is for 1; try d2");
}

TEST(PlanCheck, EveryCallRunsUnderEveryStrategy) {
  const auto with = [](const char* call, const char* strategy) {
    return broken([&](CheckCase& c) {
      c.plan.calls[call] = placed(ranks(0, 3), strategy);
    });
  };
  for (const char* strategy :
       {"d4", "d2t2", "d2p2", "d4z1", "d4z3", "d2t2s", "p2t2", "d2t2z3"})
    for (const char* call : {"actor_gen", "rew_inf", "actor_train"})
      EXPECT_EQ(with(call, strategy), "") << call;
}

TEST(PlanCheck, FunctionsRunOnTheHost) {
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.calls["advantages"] = on(0, 1); }),
            "calls.advantages.devices: expected host, where functions run, got "
            "0-1; try host");
  EXPECT_EQ(
    broken([](CheckCase& c) { c.plan.calls["advantages"].strategy.dp = 2; }),
    "calls.advantages.strategy: expected none of a function, got d2; try "
    "leaving it out");
}

TEST(PlanCheck, EveryDeviceNeedsASample) {
  const std::string d1
    = ".strategy: expected at most d1, as many dp ranks as a mini-batch has "
      "samples, got d2; try d1 on 1 device";
  EXPECT_EQ(broken([](CheckCase& c) { c.context.sizes.mini_batches = 64; }),
            "calls.actor_train" + d1 + "\ncalls.critic_train" + d1);
  EXPECT_EQ(
    broken([](CheckCase& c) {
      c.context.sizes.samples_per_step = 3;
      c.context.sizes.mini_batches = 1;
      c.plan.calls["rew_inf"] = on(0, 3);
    }),
    "calls.rew_inf.strategy: expected at most d3, as many dp ranks as a "
    "step has samples, got d4; try d3 on 3 devices");
}

TEST(PlanCheck, MiniBatchesMustHaveSamples) {
  EXPECT_EQ(broken([](CheckCase& c) {
              c.context.sizes.group_size = 8;
              c.context.sizes.mini_batches = 9;
            }),
            "algorithm.mini_batches: expected 1 to 8, the rows of a step, got "
            "9; try 8");
  EXPECT_EQ(broken([](CheckCase& c) { c.context.sizes.mini_batches = 0; }),
            "algorithm.mini_batches: expected 1 to 64, the rows of a step, "
            "got 0; try 1");
}

TEST(PlanCheck, MicroBatchesMustBePossible) {
  const auto with = [](int count, std::int64_t tokens) {
    return broken([&](CheckCase& c) {
      c.plan.calls["actor_train"].micro_batches = count;
      c.plan.calls["actor_train"].micro_batch_tokens = tokens;
    });
  };
  EXPECT_EQ(with(2, 4096),
            "calls.actor_train.micro_batches: expected micro_batches or "
            "micro_batch_tokens, got both; try leaving one out");
  EXPECT_EQ(with(9, 0),
            "calls.actor_train.micro_batches: expected at most 8, the samples "
            "of a device at a time, got 9; try 8");
  EXPECT_EQ(with(0, -1), "calls.actor_train.micro_batch_tokens: expected a "
                         "number >= 0, got -1; try leaving it out");
  EXPECT_EQ(with(-1, 0), "calls.actor_train.micro_batches: expected a number "
                         ">= 0, got -1; try leaving it out");
}

TEST(PlanCheck, OnlyReadersOfTrainedRolesMayLag) {
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.lag["advantages"] = 1; }),
            "lag.advantages: expected no lag, for advantages has no weights, "
            "got 1; try leaving it out");
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.lag["actor_train"] = 1; }),
            "lag.actor_train: expected no lag, for actor_train makes the "
            "newest version, got 1; try leaving it out");
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.lag["ref_inf"] = 1; }),
            "lag.ref_inf: expected no lag, for ref is never trained, got 1; "
            "try leaving it out");
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.lag["actor_gen"] = 9; }),
            "lag.actor_gen: expected 0 to 8, got 9; try 1");
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.lag["ref_inf"] = 0; }), "");
}

TEST(PlanCheck, ALagThatMakesAStepWaitForItselfIsAnError) {
  EXPECT_THAT(broken([](CheckCase& c) {
                c.workflow = make_ppo(
                  [](Settings& s) { s.algorithm.old_logprobs = "recompute"; });
                c.plan = plan_apart(c.workflow);
                c.plan.lag["actor_inf"] = 1;
              }),
              AllOf(HasSubstr("lag: expected lags with which every step ends, "
                              "got a step that waits for itself ("),
                    HasSubstr("); try less lag, or the same for the calls "
                              "it reads from")));
}

TEST(PlanCheck, TrainCallsOfARoleShareAReplica) {
  EXPECT_EQ(broken([](CheckCase& c) {
              auto again = c.workflow.call("actor_train");
              again.name = "actor_train_2";
              c.workflow.calls.push_back(again);
              c.plan.calls["actor_train_2"] = on(0, 0);
            }),
            "calls.actor_train_2: expected devices and strategy of "
            "actor_train, which trains actor too, got others; try the same "
            "line as of actor_train");
}

TEST(PlanCheck, WorkersHaveDevices) {
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.cluster.workers_per_node = 5; }),
            "cluster.workers_per_node: expected 1 to 4, one worker a device "
            "at most, got 5; try 4");
  EXPECT_EQ(broken([](CheckCase& c) { c.plan.cluster.workers_per_node = 0; }),
            "cluster.workers_per_node: expected 1 to 4, one worker a device "
            "at most, got 0; try 1");
  EXPECT_THAT(broken([](CheckCase& c) { c.plan.cluster.nodes = 0; }),
              HasSubstr("cluster: expected at least 1 device, got 0"));
}

TEST(PlanCheck, AllMistakesAreReportedAtOnce) {
  const auto report = report_of([](CheckCase& c) {
    c.plan.calls["rew_inf"] = on(4, 4);
    c.plan.lag["ref_inf"] = 1;
    c.plan.calls.erase("critic_inf");
  });
  EXPECT_THAT(report.errors, SizeIs(3));
  EXPECT_EQ(refusal_of([&] { require_ok(report); }),
            "calls.rew_inf.devices: expected devices of the cluster, which has "
            "4 (0-3), got 4; try 0-3 (and 2 more: see `troupe plan check`)");
}

TEST(PlanCheck, WarnsOfALagWithoutBenefit) {
  const auto warnings = [](const std::function<void(CheckCase&)>& change) {
    return report_of(change).warnings;
  };
  EXPECT_THAT(warnings([](CheckCase& c) { c.plan.lag["actor_gen"] = 1; }),
              IsEmpty());
  EXPECT_THAT(warnings([](CheckCase& c) {
                c.plan = plan_all(c.workflow, on(0, 3), 4);
                c.plan.lag["actor_gen"] = 1;
              }),
              ElementsAre("lag.actor_gen: buys no overlap, actor_gen shares "
                          "devices with the training of actor (devices 0-3)"));
  EXPECT_THAT(warnings([](CheckCase& c) { c.plan.lag["actor_gen"] = 2; }),
              ElementsAre("lag.actor_gen: 2 overlaps no more than 1, a replica "
                          "holds one version"));
  EXPECT_THAT(warnings([](CheckCase& c) {
                c.plan.lag["actor_gen"] = 1;
                c.context.corrects_for_lag = false;
              }),
              ElementsAre("lag.actor_gen: the loss does not correct for "
                          "samples of an older version; try algorithm."
                          "old_logprobs: rollout or algorithm.correction"));
}

TEST(PlanCheck, WarnsOfIdleDevices) {
  EXPECT_THAT(report_of([](CheckCase& c) {
                c.plan.cluster.devices_per_node = 6;
              }).warnings,
              ElementsAre("no call runs on devices 4-5"));
}

TEST(PlanCheck, MemoryPeaksWhereTheRoleTrains) {
  const auto report = report_of([](CheckCase& c) {
    for (const auto* role : {"actor", "ref"})
      c.context.shapes[role] = toy_shape(false);
    for (const auto* role : {"critic", "reward"})
      c.context.shapes[role] = toy_shape(true);
  });
  ASSERT_TRUE(report.ok());
  const auto weights = weight_bytes(toy_shape(false), DType::f32);
  const auto& generates = report.devices[0];
  const auto& trains = report.devices[2];
  EXPECT_EQ(generates.at_task, "ref_inf") << "logits of a micro-batch";
  EXPECT_EQ(trains.at_task, "actor_train");
  EXPECT_GE(trains.resident_bytes, 4 * weights) << "w, grad, m, v";
  EXPECT_GT(trains.peak_bytes, trains.resident_bytes);
}

TEST(PlanCheck, APlanThatDoesNotFitNamesDevicesAndTask) {
  const auto why = broken([](CheckCase& c) {
    c.context.shapes["actor"] = toy_shape(false);
    c.context.device_memory_bytes = 1'000'000;
  });
  EXPECT_THAT(why, HasSubstr("calls.actor_train: expected at most 0.001 GB on "
                             "devices 2-3, got 0.0"));
  EXPECT_THAT(why, HasSubstr(" GB of it weights, gradients and optimizer; try "
                             "d2z3 for actor_train, fewer calls on it or a "
                             "smaller micro_batch_tokens"));
}

TEST(MemoryModel, PlanesAreFp32UnlessTheEngineDiffers) {
  const auto resident = [](DType dtype, StorageRule storage) {
    return report_of([&](CheckCase& c) {
             c.context.shapes["actor"] = toy_shape(false);
             c.context.dtypes["actor"] = dtype;
             c.context.sizes.engine.storage = storage;
           })
      .devices[2]
      .resident_bytes;
  };
  const auto ours = resident(DType::f32, StorageRule::host);
  EXPECT_EQ(resident(DType::bf16, StorageRule::host), ours);
  EXPECT_EQ(resident(DType::bf16, StorageRule::gpu), ours / 16 * 18)
    << "rounded weights beside: 2 bytes of 18";
  // 4 planes of 4 bytes, or 2 of 2 bytes and 3 of 4 bytes
  EXPECT_NEAR(double(resident(DType::bf16, StorageRule::published)),
              double(ours), 1e4);
}

TEST(CheckContext, TheHostDrawsWhatNeedsMoreThanLogits) {
  Settings settings;
  settings.cluster.device = "gpu";
  const auto place = [&] {
    return make_check_context(settings, make_ppo(), {}).sizes.engine.draws;
  };
  EXPECT_EQ(place(), DrawPlace::device);
  settings.rollout.repetition_penalty = 1.1;
  EXPECT_EQ(place(), DrawPlace::host);
  settings.rollout.repetition_penalty = 1;
  settings.rollout.min_new_tokens = 1;
  EXPECT_EQ(place(), DrawPlace::host);
}

TEST(CheckContext, FollowsTheSettings) {
  Settings settings;
  settings.data.batch_size = 16;
  settings.rollout.n = 4;
  settings.algorithm.old_logprobs = "recompute";
  settings.cluster.move_staging_mib = 3;
  const auto ppo = make_ppo();
  const ExecutionPlan plan;
  const auto context = make_check_context(settings, ppo, plan);
  EXPECT_EQ(context.sizes.samples_per_step, 64u);
  EXPECT_EQ(context.sizes.group_size, 4u);
  EXPECT_FALSE(context.corrects_for_lag);
  EXPECT_EQ(context.sizes.move_staging_bytes, 3u << 20);
  EXPECT_EQ(Settings{}.cluster.move_staging_bytes(),
            BatchSizes{}.move_staging_bytes);
  const auto sft = sft_workflow({});
  EXPECT_EQ(make_check_context(settings, sft, plan).sizes.samples_per_step,
            16u);
}

} // namespace
} // namespace troupe::plans
