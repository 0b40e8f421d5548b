#include "config/model/model_shape.hpp"
#include "plans/weights/rounded_moves.hpp"

#include "tests/support/plans/problem_support.hpp"
#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

namespace troupe::plans {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Returns the names of replicas that only compute with what moves bring.
std::vector<std::string> only_compute(const Workflow& workflow) {
  std::vector<std::string> names;
  const auto replicas = replicas_of(workflow, plan_apart(workflow));
  for (const auto& replica : replicas.all)
    if (is_only_computed_with(workflow, replica))
      names.push_back(replica.name());
  return names;
}

TEST(RoundedMoves, AreToReplicasThatDoNotTrainWhatTheyGet) {
  EXPECT_THAT(only_compute(make_ppo()), Contains("actor@actor_gen"));
  for (const auto& name : only_compute(make_ppo())) {
    EXPECT_THAT(name, Not(HasSubstr("_train")));
    EXPECT_THAT(name, Not(StartsWith("ref@"))) << "no move goes there";
  }
}

TEST(RoundedMoves, AreNotToAveragesOfWeights) {
  auto workflow = make_ppo();
  const Replica generates{.role = "actor"};
  EXPECT_TRUE(is_only_computed_with(workflow, generates));
  for (auto& role : workflow.roles)
    if (role.name == "actor")
      role.ema = EmaSource{.role = "critic"};
  EXPECT_FALSE(is_only_computed_with(workflow, generates));
}

TEST(RoundedMoves, RoundWhatProductsRead) {
  const auto model = parameters(shape_tiny());
  const auto rounded = read_rounded(model);
  ASSERT_EQ(rounded.size(), model.size());
  for (std::size_t i = 0; i < model.size(); ++i)
    EXPECT_EQ(rounded[i], !model[i].vector) << model[i].name;
}

} // namespace
} // namespace troupe::plans
