#include "config/settings/mistakes.hpp"

#include "tests/config/settings_fixture.hpp"
#include <gmock/gmock.h>

namespace {

using SeveralMistakes = troupe::support::SettingsFixture;

TEST_F(SeveralMistakes, AreReportedTogether) {
  EXPECT_EQ(errors({"ppo.yaml"}, {"run.steps=ten", "rollout.n=-1",
                                  "rollout.temprature=1", "workflow=pop"})
              .size(),
            4u);
  EXPECT_THAT(errors({}, {"workflow=ppo"}),
              ::testing::ElementsAre(::testing::HasSubstr("run.steps"),
                                     ::testing::HasSubstr("models.actor.path"),
                                     ::testing::HasSubstr("models.critic.path"),
                                     ::testing::HasSubstr("models.reward.path"),
                                     ::testing::HasSubstr("data.train")));
}

TEST(Mistakes, OneIsThrownUnchangedAndALineIsReportedOnce) {
  const troupe::ConfigError mistake(troupe::Place{"x", 1}, "a slip");
  troupe::Mistakes mistakes;
  mistakes.throw_any();
  mistakes.add(mistake);
  mistakes.add(mistake);
  try {
    mistakes.throw_any();
    FAIL();
  } catch (const troupe::ConfigErrors&) {
    FAIL() << "one mistake";
  } catch (const troupe::ConfigError& error) {
    EXPECT_STREQ(error.what(), "x:1: a slip");
  }
}

} // namespace
