#include "runtime/metrics/run_summary.hpp"
#include "runtime/metrics/step_names.hpp"

#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::runtime;
using std::chrono::milliseconds;

namespace {

/// PPO that recomputes old log-probabilities, on two devices.
PreparedRun recomputing_ppo() {
  PreparedRun run;
  run.work.settings.workflow = "ppo";
  run.work.settings.algorithm.old_logprobs = "recompute";
  run.work.workflow = plans::make_workflow(run.work.settings);
  run.work.plan.cluster.devices_per_node = 2;
  return run;
}

/// Tasks of 100, 200, ... ms, one after the other.
actors::StepReport report_of(const PreparedRun& run) {
  actors::StepReport report;
  auto now = actors::Clock::now();
  for (const auto& call : run.work.workflow.calls) {
    const auto lasts
      = milliseconds{100 * static_cast<int>(report.tasks.size() + 1)};
    report.tasks.push_back({.name = call.name,
                            .call = call.name,
                            .kind = plans::TaskKind::call,
                            .devices = {},
                            .started = now,
                            .ended = now + lasts,
                            .busy = {}});
    now += lasts;
  }
  return report;
}

} // namespace

TEST(StepNames, EachCallHasItsOwnPhase) {
  const auto run = recomputing_ppo();
  const auto report = report_of(run);
  const auto metrics = name_step(run, report);
  const std::map<std::string, std::string> phases
    = {{"actor_gen", "gen"},
       {"rew_inf", "reward"},
       {"ref_inf", "ref"},
       {"critic_inf", "values"},
       {"actor_inf", "old_log_prob"},
       {"advantages", "adv"},
       {"actor_train", "update_actor"},
       {"critic_train", "update_critic"}};
  ASSERT_EQ(report.tasks.size(), phases.size());
  for (const auto& task : report.tasks) {
    const auto seconds = metrics.find("timing_s/" + phases.at(task.call));
    ASSERT_TRUE(seconds) << task.call;
    EXPECT_NEAR(*seconds, actors::Seconds{task.ended - task.started}.count(),
                1e-9)
      << task.call;
  }
}

TEST(StepNames, CallsOfAUserWorkflowHaveTheirNames) {
  using enum plans::CallKind;
  PreparedRun run;
  run.work.workflow.name = "debate";
  run.work.workflow.roles = {{.name = "actor", .trained = true},
                             {.name = "b", .trained = true},
                             {.name = "judge", .scalar_head = true}};
  run.work.workflow.calls
    = {{.name = "solve", .kind = generate, .role = "actor"},
       {.name = "b_gen", .kind = generate, .role = "b", .fn = "generate"},
       {.name = "who_won", .kind = inference, .role = "judge", .fn = "scores"},
       {.name = "score", .kind = function, .fn = "rewards"},
       {.name = "compare", .kind = function, .fn = "debate.compare"},
       {.name = "actor_train", .kind = train, .role = "actor"},
       {.name = "b_train", .kind = train, .role = "b", .fn = "debate.b_train"}};
  auto report = report_of(run);
  report.duration = actors::Seconds{3};
  const auto metrics = name_step(run, report);
  std::vector<std::string> phases;
  for (const auto& [name, value] : metrics.values)
    if (name.starts_with("timing_s/"))
      phases.push_back(name.substr(9));
  EXPECT_THAT(phases, testing::UnorderedElementsAre(
                        "gen", "b_gen", "who_won", "reward", "compare",
                        "update_actor", "b_train", "step"));
  RunSummary summary;
  summary.add(metrics);
  EXPECT_THAT(summary.print(), testing::HasSubstr("\n  compare "));
}

TEST(StepNames, IdleTimeIsSplitByReason) {
  const auto run = recomputing_ppo();
  actors::StepReport report;
  report.duration = actors::Seconds{2};
  report.busy = {{Rank{0}, actors::Seconds{2}}, {Rank{1}, actors::Seconds{1}}};
  report.idle.dependency = actors::Seconds{3};
  report.idle.bytes = actors::Seconds{1};
  const auto metrics = name_step(run, report);
  EXPECT_DOUBLE_EQ(*metrics.find("perf/idle_ratio"), 0.25);
  EXPECT_DOUBLE_EQ(*metrics.find("perf/idle/dependency"), 0.1875);
  EXPECT_DOUBLE_EQ(*metrics.find("perf/idle/bytes"), 0.0625);
}

TEST(StepNames, ThroughputIsTokensPerSecondAndDevice) {
  const auto run = recomputing_ppo();
  actors::StepReport report;
  report.duration = actors::Seconds{0.5};
  report.tokens.all = 1000;
  EXPECT_DOUBLE_EQ(*name_step(run, report).find("perf/throughput"), 1000);
}

TEST(StepNames, RowsOfEachFileOfAMixtureAreCounted) {
  auto run = recomputing_ppo();
  EXPECT_FALSE(name_step(run, {}).find("data/rows/math")) << "of one file";
  auto& settings = run.work.settings;
  settings.data.batch_size = 8;
  settings.data.sources = {{"math.jsonl", 3}, {"code.jsonl.gz", 1}};
  run.data.sources.emplace(settings, std::vector<std::uint32_t>{50, 20});
  actors::StepReport report;
  report.step = StepId{4};
  const auto metrics = name_step(run, report);
  EXPECT_EQ(metrics.find("data/rows/math"), 6);
  EXPECT_EQ(metrics.find("data/rows/code"), 2);
}

TEST(StepNames, TextsOfPtxCountInTheThroughput) {
  auto run = recomputing_ppo();
  auto& settings = run.work.settings;
  settings.data.ptx = "texts.jsonl";
  settings.data.ptx_batch_size = 2;
  settings.data.shuffle = false;
  run.data.texts.emplace(settings, std::vector<std::uint32_t>{5, 7, 9});
  actors::StepReport report;
  report.duration = actors::Seconds{0.5};
  report.tokens.all = 1000;
  const auto metrics_of = [&](std::uint32_t step) {
    report.step = StepId{step};
    return name_step(run, report);
  };
  EXPECT_EQ(*metrics_of(0).find("perf/total_num_tokens"), 1000 + 5 + 7);
  EXPECT_EQ(*metrics_of(1).find("perf/total_num_tokens"), 1000 + 9 + 5);
  EXPECT_EQ(*metrics_of(1).find("perf/throughput"), 1014);
}
