#include "runtime/metrics/run_summary.hpp"
#include "runtime/step_names.hpp"

#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::runtime;
using std::chrono::milliseconds;

namespace {

/// PPO that recomputes old log-probabilities, on two devices.
SessionPlan recomputing_ppo() {
  SessionPlan session;
  session.settings.workflow = "ppo";
  session.settings.algorithm.old_logprobs = "recompute";
  session.workflow = plans::make_workflow(session.settings);
  session.plan.cluster.devices_per_node = 2;
  return session;
}

/// Tasks of 100, 200, .. ms, one behind the other.
actors::StepReport report_of(const SessionPlan& session) {
  actors::StepReport report;
  auto now = actors::Clock::now();
  for (const auto& call : session.workflow.calls) {
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

TEST(StepNames, EachCallHasAPhaseOfItsOwn) {
  const auto session = recomputing_ppo();
  const auto report = report_of(session);
  const auto metrics = name_step(session, report);
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

TEST(StepNames, CallsOfAnOwnWorkflowCarryTheirOwnNames) {
  using enum plans::CallKind;
  SessionPlan session;
  session.workflow.name = "debate";
  session.workflow.roles = {{.name = "actor", .trained = true},
                            {.name = "b", .trained = true},
                            {.name = "judge", .scalar_head = true}};
  session.workflow.calls
    = {{.name = "solve", .kind = generate, .role = "actor"},
       {.name = "b_gen", .kind = generate, .role = "b", .fn = "generate"},
       {.name = "who_won", .kind = inference, .role = "judge", .fn = "scores"},
       {.name = "score", .kind = function, .fn = "rewards"},
       {.name = "compare", .kind = function, .fn = "debate.compare"},
       {.name = "actor_train", .kind = train, .role = "actor"},
       {.name = "b_train", .kind = train, .role = "b", .fn = "debate.b_train"}};
  auto report = report_of(session);
  report.duration = actors::Seconds{3};
  const auto metrics = name_step(session, report);
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

TEST(StepNames, IdleTimeIsSharedOutByReason) {
  const auto session = recomputing_ppo();
  actors::StepReport report;
  report.duration = actors::Seconds{2};
  report.busy = {{Rank{0}, actors::Seconds{2}}, {Rank{1}, actors::Seconds{1}}};
  report.idle.dependency = actors::Seconds{3};
  report.idle.bytes = actors::Seconds{1};
  const auto metrics = name_step(session, report);
  EXPECT_DOUBLE_EQ(*metrics.find("perf/idle_ratio"), 0.25);
  EXPECT_DOUBLE_EQ(*metrics.find("perf/idle/dependency"), 0.1875);
  EXPECT_DOUBLE_EQ(*metrics.find("perf/idle/bytes"), 0.0625);
}

TEST(StepNames, ThroughputIsTokensASecondAndDevice) {
  const auto session = recomputing_ppo();
  actors::StepReport report;
  report.duration = actors::Seconds{0.5};
  report.tokens = 1000;
  EXPECT_DOUBLE_EQ(*name_step(session, report).find("perf/throughput"), 1000);
}
