#include "runtime/planner/user_plan.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::runtime;
using troupe::test::TempFolder;
using troupe::test::write_text;

namespace {

constexpr const char* run_text = "workflow: ppo\n"
                                 "run: {steps: 60}\n"
                                 "models:\n"
                                 "  actor: {path: a}\n"
                                 "  critic: {path: c}\n"
                                 "  reward: {path: r}\n"
                                 "data: {train: p.jsonl}\n";

Settings with_plan(const std::string& text) {
  return parse_settings(run_text + text, "run.yaml");
}

std::string place_text(const Settings& settings, const std::string& path) {
  return places_of_plan(settings, "searched")(path);
}

} // namespace

TEST(UserPlan, NamesOfPresetsAreNoUserPlans) {
  EXPECT_FALSE(user_plan(with_plan("plan: auto\n")));
  EXPECT_FALSE(user_plan(with_plan("plan: megatron\n")));
}

TEST(UserPlan, MistakesInAFileNameItsLines) {
  const TempFolder temp;
  const auto file = (temp.path() / "plan.yaml").string();
  write_text(file, "cluster: {nodes: 1, devices_per_node: 2}\n"
                   "calls:\n"
                   "  actor_gen:\n"
                   "    devices: 0-1\n"
                   "    strategy: d2\n"
                   "  rew_inf: {devices: 0}\n");
  const auto settings = with_plan("plan: " + file + "\n");
  const auto written = user_plan(settings);
  ASSERT_TRUE(written);
  EXPECT_TRUE(written->has_cluster);
  EXPECT_EQ(written->name, file);
  EXPECT_EQ(place_text(settings, "calls.actor_gen.strategy"), file + ":5: ");
  EXPECT_EQ(place_text(settings, "calls.rew_inf.strategy"), file + ":6: ");
  EXPECT_EQ(place_text(settings, "calls.ref_inf"), file + ":2: ");
  EXPECT_EQ(place_text(settings, "lag.actor_gen"), file + ":1: ");
}

TEST(UserPlan, MistakesInAMappingNameLinesOfTheSettings) {
  const auto settings = with_plan("plan:\n"
                                  "  calls:\n"
                                  "    actor_gen: {devices: 0}\n"
                                  "    rew_inf: {devices: 0}\n");
  EXPECT_FALSE(user_plan(settings)->has_cluster);
  EXPECT_EQ(place_text(settings, "calls.rew_inf.strategy"),
            "run.yaml:11: plan.");
  const auto wrong = with_plan("plan:\n"
                               "  calls:\n"
                               "    actor_gen: {devices: 0}\n"
                               "    rew_inf: {device: 0}\n");
  try {
    user_plan(wrong);
    FAIL() << "a placement has no key 'device'";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                ::testing::StartsWith("run.yaml:11: plan.calls.rew_inf.device: "
                                      "expected one of devices, "));
  }
}

TEST(UserPlan, OtherMistakesNameTheirCauseInTheFile) {
  const auto named = with_plan("plan: megatron\n");
  EXPECT_EQ(place_text(named, "calls.actor_gen.strategy"), "run.yaml:8: ");
  EXPECT_EQ(place_text(with_plan(""), "calls.actor_gen.strategy"),
            "plan searched: ");
  const auto set = with_plan("algorithm: {mini_batches: 3}\n");
  EXPECT_EQ(place_text(set, "algorithm.mini_batches"), "run.yaml:8: ");
  EXPECT_EQ(place_text(named, "algorithm.mini_batches"), "run.yaml: ")
    << "a default";
}

TEST(UserPlan, ARefusedPresetNamesItsPlaceInTheFile) {
  const auto refuse = []() -> plans::ExecutionPlan {
    throw PlanError("plan: expected 2 devices, got 1");
  };
  try {
    named_by_user(with_plan("plan: async\n"), refuse);
    FAIL() << "it refuses";
  } catch (const PlanError& error) {
    EXPECT_STREQ(error.what(), "run.yaml:8: plan: expected 2 devices, got 1");
  }
}

namespace {

constexpr const char* two_calls = "calls:\n"
                                  "  actor_gen: {devices: 0}\n"
                                  "lag:\n"
                                  "  actor_gen: 2\n";

std::string lag_error(const Settings& settings) {
  try {
    user_plan(settings);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

} // namespace

TEST(UserPlan, ALagBeyondMaxLagNamesBothPlaces) {
  const TempFolder temp;
  const auto file = (temp.path() / "plan.yaml").string();
  write_text(file, two_calls);
  EXPECT_EQ(lag_error(with_plan("algorithm: {max_lag: 1}\nplan: " + file)),
            file
              + ":4: lag.actor_gen: expected at most 1, algorithm.max_lag "
                "(run.yaml:8), got 2; try algorithm.max_lag=2");
  EXPECT_EQ(lag_error(with_plan("algorithm: {max_lag: 0}\nplan:\n"
                                "  calls: {actor_gen: {devices: 0}}\n"
                                "  lag: {actor_gen: 1}\n")),
            "run.yaml:11: plan.lag.actor_gen: expected at most 0, "
            "algorithm.max_lag (run.yaml:8), got 1; try algorithm.max_lag=1");
}

TEST(UserPlan, ALagWithinMaxLagOrWithoutOneIsFree) {
  const TempFolder temp;
  const auto file = (temp.path() / "plan.yaml").string();
  write_text(file, two_calls);
  for (const auto* limit :
       {"", "algorithm: {max_lag: auto}\n", "algorithm: {max_lag: 2}\n"})
    EXPECT_EQ(
      user_plan(with_plan(limit + ("plan: " + file)))->plan.lag_of("actor_gen"),
      2u)
      << limit;
  EXPECT_EQ(max_lag_of(with_plan("")), 0u);
  EXPECT_EQ(max_lag_of(with_plan("algorithm: {max_lag: 4}\n")), 4u);
}

TEST(UserPlan, APresetThatLagsBeyondMaxLagIsRefused) {
  const auto make = [] {
    plans::ExecutionPlan plan;
    plan.lag["actor_gen"] = 1;
    return plan;
  };
  const auto settings = with_plan("algorithm: {max_lag: 0}\nplan: async\n");
  try {
    named_by_user(settings, make);
    FAIL() << "it lags";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "run.yaml:9: plan: expected lags of at most 0, "
                 "algorithm.max_lag (run.yaml:8), got async, whose actor_gen "
                 "lags 1; try algorithm.max_lag=1");
  }
  EXPECT_EQ(named_by_user(with_plan("plan: async\n"), make).lag_of("actor_gen"),
            1u);
}
