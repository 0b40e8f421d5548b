// Second models in conversations: which roles they may be, and where they come
// from.
#include "plans/workflow/evaluation.hpp"
#include "plans/workflow/second_roles.hpp"

#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

TEST(SecondRoles, AgentsMayAskOneBesideTheActor) {
  const auto workflow = make_ppo_with_opponent();
  EXPECT_THAT(workflow.call("actor_gen").by.with, ElementsAre("opponent"));
  EXPECT_EQ(workflow.roles.front().name, "actor");
  EXPECT_FALSE(workflow.role("opponent").trained);
  EXPECT_TRUE(is_second_role(workflow, "opponent"));
  EXPECT_FALSE(is_second_role(workflow, "ref"));
  EXPECT_EQ(refusal_of([&] { check(workflow); }), "accepted");
}

TEST(SecondRoles, EvaluationsHaveThemToo) {
  Settings settings;
  settings.eval.data = "eval.jsonl";
  const auto alone
    = evaluation_of(with_evaluation(make_ppo_with_opponent(), settings));
  EXPECT_THAT(alone.call("eval_actor_gen").by.with, ElementsAre("opponent"));
  EXPECT_NE(alone.find_role("opponent"), nullptr);
}

TEST(SecondRoles, WhatCannotSpeakBesideAnotherIsRefused) {
  const auto refused = [](const std::vector<std::string>& with,
                          const std::function<void(Workflow&)>& change = {}) {
    auto workflow = make_ppo_with_opponent();
    workflow.calls.front().by.with = with;
    std::erase_if(workflow.roles,
                  [](const Role& role) { return role.name == "opponent"; });
    if (change)
      change(workflow);
    return refusal_of([&] { check(workflow); });
  };
  EXPECT_EQ(refused({"ref"}), "accepted");
  EXPECT_THAT(refused({"reff"}), HasSubstr("call actor_gen has 'reff' in its "
                                           "conversations (with), which is no "
                                           "role"));
  EXPECT_THAT(refused({"actor"}), HasSubstr("is the call's own role"));
  EXPECT_THAT(refused({"ref", "ref"}), HasSubstr("is there twice"));
  EXPECT_THAT(refused({"critic"}),
              HasSubstr("is trained, and only a frozen role speaks beside"));
  EXPECT_THAT(refused({"ref"},
                      [](Workflow& w) {
                        std::ranges::find(w.roles, "ref", &Role::name)->ema
                          = {.role = "actor"};
                      }),
              HasSubstr("follows actor, so its weights change"));
  EXPECT_THAT(refused({"judge"},
                      [](Workflow& w) {
                        w.roles.push_back(
                          {.name = "judge", .scalar_head = true});
                      }),
              HasSubstr("has a scalar head, which says nothing"));
  EXPECT_THAT(
    refused({"ref"},
            [](Workflow& w) { w.calls.front().by.user_actor = false; }),
    HasSubstr("which nobody leads; try an actor or a Python function (fn), or "
              "agents.command"));
}

} // namespace
} // namespace troupe::plans
