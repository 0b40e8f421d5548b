// Runs that were, under other plans.
#include "config/base/error.hpp"
#include "plans/presets/presets.hpp"
#include "plans/simulate/fit_measured.hpp"
#include "plans/simulate/simulator.hpp"
#include "runtime/planner/phase_names.hpp"
#include "runtime/planner/recorded_steps.hpp"
#include "runtime/planner/replay.hpp"

#include "tests/support/places.hpp"
#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::HasSubstr;
using Json = nlohmann::json;

namespace {

/// A run of three steps on eight GPUs whose calls took twice their predictions.
class Replay : public ::testing::Test {
protected:
  Replay() {
    arguments_.run = folder_.path().string();
    arguments_.hardware = "h100x8";
    arguments_.quiet = true;
    const auto file = support::source_folder() / "examples/paper/7b.yaml";
    const auto settings = load_settings(
      {file.string()}, {"cluster.device=gpu", "cluster.nodes=1",
                        "cluster.devices_per_node=8", "plan=megatron"});
    write("config.yaml", print_settings(settings));
    PlanArguments words = arguments_;
    problem_ = make_problem(settings, words);
    problem_.lengths = plans::Lengths(prompt, 200, 256);
    plan_ = plans::fitted_preset("megatron", problem_);
    write("plan.yaml", plans::print(plan_));
    write_steps(2);
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }

  /// Writes metrics in which everything takes `times` as long as simulated.
  void write_steps(double times) const {
    const auto simulated = plans::simulated_seconds(problem_, plan_);
    Json step = {{"prompt_length/mean", prompt},
                 {"response_length/mean", 200},
                 {"response_length/max", 256},
                 {"perf/idle/dependency", 0.25},
                 {"perf/idle/version", 0.0},
                 {"timing_s/move", times * simulated.moves}};
    for (const auto& [call, seconds] : simulated.calls) {
      auto& phase = step[phase_of(problem_.workflow, call)];
      phase = (phase.is_null() ? 0 : phase.get<double>()) + times * seconds;
    }
    step["timing_s/step"]
      = times
        * plans::simulate_step_s(problem_, plans::CostModel(problem_), plan_);
    std::string lines = R"({"step":1,"timing_s/step":1000})"
                        "\n";
    for (const int number : {2, 3}) {
      step["step"] = number;
      lines += step.dump() + "\n";
    }
    write("metrics.jsonl", lines
                             + R"({"step":3,"val-core/score":1})"
                               "\n{\"cut");
  }

  static constexpr double prompt = 512;
  const support::TempFolder folder_;
  ReplayArguments arguments_;
  plans::PlanProblem problem_;
  plans::ExecutionPlan plan_;
};

TEST_F(Replay, ItsOwnPlanTakesWhatWasMeasured) {
  arguments_.other = "megatron";
  const auto report = replay(arguments_);
  EXPECT_EQ(report.steps_of_run, 2U) << "the first step warms up";
  ASSERT_EQ(report.steps.size(), 2U);
  EXPECT_EQ(report.steps[0].step, 2U);
  for (const auto& step : report.steps) {
    EXPECT_NEAR(step.predicted_s, step.measured_s / 2, 0.01 * step.measured_s);
    EXPECT_NEAR(step.fitted_s, step.measured_s, 0.02 * step.measured_s);
    EXPECT_NEAR(step.other_s, step.fitted_s, 1e-9 * step.measured_s);
  }
}

TEST_F(Replay, WithoutAPlanTheBestOneIsFound) {
  const auto report = replay(arguments_);
  EXPECT_EQ(report.other.name, "best found");
  EXPECT_LT(report.mean_s(&ReplayedStep::other_s),
            report.mean_s(&ReplayedStep::fitted_s));
  const auto text = replay_text(report);
  EXPECT_THAT(text, HasSubstr("best found would have taken"));
  EXPECT_THAT(text, HasSubstr("% less"));
  EXPECT_THAT(text, HasSubstr(plans::print(report.other.plan)));
  EXPECT_THAT(text, HasSubstr("(25 %) for rows of calls on other devices;"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("new weights")));
}

TEST_F(Replay, MoreNodesAndALagAreOtherPlans) {
  arguments_.nodes = 2;
  auto report = replay(arguments_);
  EXPECT_EQ(report.other.plan.cluster.num_devices(), 16U);
  EXPECT_LT(report.mean_s(&ReplayedStep::other_s),
            report.mean_s(&ReplayedStep::fitted_s));
  arguments_.nodes = 0;
  arguments_.lag = 1;
  report = replay(arguments_);
  EXPECT_EQ(report.other.name, "own plan, lag 1");
  EXPECT_EQ(report.other.plan.lag_of("actor_gen"), 1U);
  EXPECT_EQ(report.own.plan.lag_of("actor_gen"), 0U);
}

TEST_F(Replay, ALagBeyondTheRunsLimitIsRefused) {
  const auto file = folder_ / "config.yaml";
  auto settings = load_settings({file.string()}, {"algorithm.max_lag=1"});
  write("config.yaml", print_settings(settings));
  arguments_.lag = 2;
  try {
    replay(arguments_);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("--lag: expected at most 1, algorithm.max_lag ("));
    EXPECT_THAT(error.what(), HasSubstr("got 2; try --lag 1"));
  }
  arguments_.lag = 1;
  EXPECT_EQ(replay(arguments_).other.plan.lag_of("actor_gen"), 1U);
}

TEST_F(Replay, TheDocumentHasTheNumbersOfEachStep) {
  arguments_.other = "verl";
  const auto document = Json::parse(replay_json(replay(arguments_)));
  EXPECT_EQ(document.at("workflow"), "ppo");
  EXPECT_EQ(document.at("own").at("name"), "megatron");
  EXPECT_EQ(document.at("other").at("name"), "verl");
  EXPECT_EQ(document.at("steps").size(), 2U);
  for (const auto* name :
       {"step", "measured_s", "predicted_s", "fitted_s", "other_s"})
    EXPECT_TRUE(document.at("steps")[0].contains(name)) << name;
  EXPECT_EQ(document.at("phases")[0].size(), 4U);
  EXPECT_EQ(document.at("idle")[0].at("waits_for"),
            "rows of calls on other devices");
  EXPECT_EQ(document.at("basis").at("hardware"), "h100x8");
}

TEST_F(Replay, AFolderThatIsNoRunIsRefused) {
  std::filesystem::remove(folder_ / "plan.yaml");
  try {
    replay(arguments_);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("RUN"));
    EXPECT_THAT(error.what(), HasSubstr("no plan.yaml in"));
  }
  write("plan.yaml", plans::print(plan_));
  write("metrics.jsonl", "");
  EXPECT_THROW(replay(arguments_), ConfigError);
}

} // namespace
