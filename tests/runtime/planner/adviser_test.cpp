// Advice about settings of ours.
#include "runtime/planner/adviser.hpp"

#include <gtest/gtest.h>

#include "tests/support/places.hpp"

using namespace troupe;
using namespace troupe::runtime;

namespace {

AdviceReport advice(const std::vector<std::string>& changes) {
  AdviseArguments arguments;
  arguments.hardware = "h100x8";
  arguments.quiet = true;
  arguments.clusters = false;
  auto& words = arguments.words.words;
  words = {(support::source_folder() / "examples/paper/7b.yaml").string(),
           "cluster.nodes=2", "plan=auto"};
  words.insert(words.end(), changes.begin(), changes.end());
  return advise(arguments);
}

TEST(Adviser, SettingsOfOursAreSearchedUpToTheirLag) {
  const auto without = advice({});
  ASSERT_TRUE(without.best && without.best->run);
  EXPECT_EQ(without.best->plan.lag_of("actor_gen"), 0U);
  const auto with = advice({"algorithm.max_lag=1"});
  ASSERT_TRUE(with.best && with.best->run);
  EXPECT_EQ(with.best->plan.lag_of("actor_gen"), 1U);
  EXPECT_LT(with.best->run->step_s, without.best->run->step_s);
  EXPECT_EQ(with.own.plan, with.best->plan) << "the plan is to be searched";
}

} // namespace
