// The built-in workflows written as files (examples/workflows) equal the
// built-in ones, and mistakes in a file are reported with their lines.
#include "config/settings/settings.hpp"
#include "config/settings/workflow_traits.hpp"
#include "plans/workflow/workflow.hpp"
#include "plans/workflow/workflow_file.hpp"

#include "tests/support/places.hpp"
#include "tests/support/plans/support.hpp"
#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

namespace fs = std::filesystem;

std::string shipped(const std::string& name) {
  return (support::source_folder() / "examples/workflows" / (name + ".yaml"))
    .string();
}

Workflow from_file(const std::string& file, const Settings& settings = {}) {
  const auto none
    = [](const std::string&) -> std::optional<Workflow> { return {}; };
  const auto read = read_workflow_file(file);
  auto workflow = file_workflow(read, settings, none);
  check(workflow, read.places);
  return workflow;
}

/// Checks that only the name differs.
void expect_same(Workflow ours, const Workflow& theirs) {
  ours.name = theirs.name;
  ASSERT_EQ(ours.calls.size(), theirs.calls.size());
  for (std::size_t i = 0; i < ours.calls.size(); ++i)
    EXPECT_EQ(ours.calls[i], theirs.calls[i]) << ours.calls[i].name;
  EXPECT_EQ(ours, theirs);
}

TEST(WorkflowFile, ALeaderInPythonIsAnActorOfItsGeneration) {
  Settings settings;
  settings.algorithm.kl_in = "none";
  const auto workflow = from_file(
    (support::source_folder() / "examples/tool_use/python/workflow.yaml")
      .string(),
    settings);
  const auto& solve = workflow.call("solve");
  EXPECT_EQ(solve.kind, CallKind::generate);
  EXPECT_TRUE(solve.by.user_actor);
  EXPECT_EQ(solve.fn, "examples/tool_use/python/conversations.py:solve");
  EXPECT_THAT(solve.reads, ElementsAre("prompt_ids"));
  EXPECT_THAT(solve.writes, ElementsAre("sequence_ids", "loss_mask", "logprobs",
                                        "truncated", "asked"));
  EXPECT_THAT(workflow.dataset_keys, ElementsAre("prompt_ids"));
}

TEST(WorkflowFile, BuiltInWorkflowsCanBeWrittenAsFiles) {
  Settings settings;
  expect_same(from_file(shipped("sft")), sft_workflow(settings));
  expect_same(from_file(shipped("reward")), reward_workflow(settings));
  expect_same(from_file(shipped("dpo")), dpo_workflow(settings));
  expect_same(from_file(shipped("distillation")),
              distillation_workflow(settings));
  expect_same(from_file(shipped("kto")), kto_workflow(settings));
  settings.algorithm.kl_in = "loss";
  settings.reward.kind = "rule";
  expect_same(from_file(shipped("grpo")), grpo_workflow(settings));
  settings.algorithm.group.rounds = 3; // dynamic sampling
  expect_same(from_file(shipped("grpo"), settings), grpo_workflow(settings));
}

TEST(WorkflowFile, AgentsLeadAFilesGenerationAsABuiltInOnes) {
  Settings settings;
  settings.algorithm.kl_in = "loss";
  settings.reward.kind = "agents";
  settings.rollout.engine.agents.command = "run";
  const auto grpo = from_file(shipped("grpo"), settings);
  expect_same(grpo, grpo_workflow(settings));
  EXPECT_TRUE(grpo.call("actor_gen").by.user_actor);
  EXPECT_EQ(grpo.writer("agent_rewards")->name, "actor_gen");
}

TEST(WorkflowFile, PpoWithItsCarriedValuesCanBeWrittenAsAFile) {
  Settings settings;
  settings.algorithm.kl_control.target = 6;
  settings.algorithm.kl_coef = 0.3;
  settings.algorithm.value.norm = true;
  const auto ppo = from_file(shipped("ppo"), settings);
  expect_same(ppo, ppo_workflow(settings));
  EXPECT_EQ(ppo.carried.front(),
            (CarriedValue{"kl_coef", 0.3, "actor/kl_coef"}));
}

TEST(WorkflowFile, AFileReadsTheSettingsOfItsBuiltIn) {
  for (const std::string name :
       {"sft", "reward", "dpo", "kto", "ppo", "grpo", "distillation"}) {
    const auto ours = read_workflow_file(shipped(name)).traits;
    const auto& theirs = *find_workflow_traits(name);
    EXPECT_EQ(ours.groups, theirs.groups) << name;
    EXPECT_EQ(ours.data, theirs.data) << name;
    for (const auto& role : ours.roles)
      EXPECT_EQ(role.default_path_of,
                theirs.find_role(role.name)->default_path_of);
  }
}

struct WorkflowFileTest : ::testing::Test {
  support::TempFolder folder;
  fs::path file = folder / "graph.yaml";

  std::string complaint(const std::string& text,
                        const Settings& settings = {}) {
    std::ofstream(file) << text;
    const auto line = refusal_of([&] { from_file(file.string(), settings); });
    const auto at = line.find("graph.yaml");
    return at == line.npos ? line : line.substr(at);
  }

  /// Returns the mistakes of an SFT workflow in a file with these lines
  /// appended.
  std::string with(const std::string& more) {
    return complaint("roles: {actor: {trained: true}}\n"
                     "calls:\n"
                     "  train: {train: actor, fn: sft_loss, "
                     "reads: [sequence_ids, loss_mask]}\n"
                     + more);
  }

  /// Returns the mistakes of a workflow whose call `count` carries this.
  std::string carrying(const std::string& values) {
    return with("  count: {function: f, reads: [loss_mask], carries: " + values
                + "}\n");
  }
};

TEST_F(WorkflowFileTest, OtherRolesSpeakInConversationsThatSomebodyLeads) {
  const auto talking = [&](const std::string& talk, const Settings& settings) {
    return complaint(
      "settings: [rollout, agents]\n"
      "roles: {actor: {trained: true}, opponent: {like: actor}}\n"
      "calls:\n"
      "  talk: "
        + talk
        + "\n"
          "  train: {train: actor, fn: sft_loss, "
          "reads: [sequence_ids, loss_mask]}\n",
      settings);
  };
  Settings settings;
  EXPECT_THAT(talking("{generate: actor, with: [opponent]}", settings),
              HasSubstr("call talk has other models in its conversations "
                        "(with), which nobody leads"));
  EXPECT_THAT(talking("{generate: actor, with: opponent}", settings),
              HasSubstr("calls.talk.with: expected a list of roles"));
  settings.rollout.engine.agents.command = "run";
  EXPECT_EQ(talking("{generate: actor, with: [opponent]}", settings),
            "accepted");
  EXPECT_THAT(talking("{generate: actor, with: [oponent]}", settings),
              HasSubstr("which is no role"));
  EXPECT_THAT(with("  count: {function: f, reads: [loss_mask], with: [actor]}"),
              HasSubstr("calls.count.with: expected it in a call that "
                        "generates, got it in a call of kind function"));
}

TEST_F(WorkflowFileTest, AgentsLeadOneGeneration) {
  Settings settings;
  settings.rollout.engine.agents.command = "run";
  EXPECT_THAT(complaint("settings: [rollout, agents]\n"
                        "roles: {actor: {}}\n"
                        "calls:\n"
                        "  gen: {generate: actor}\n"
                        "  best: {generate: actor, greedy: true, writes: "
                        "{best_ids: sequence_ids}}\n",
                        settings),
              HasSubstr("graph.yaml:5: calls.best: expected one generation"));
}

TEST_F(WorkflowFileTest, MistakesInTheGraphNameTheirLine) {
  EXPECT_EQ(with(""), "accepted");
  EXPECT_THAT(with("  twice: {infer: actr, fn: logprobs}\n"),
              HasSubstr("graph.yaml:4: workflow "));
  EXPECT_THAT(with("  twice: {infer: actr, fn: logprobs}\n"),
              HasSubstr("call twice: unknown role 'actr'; try 'actor'"));
  EXPECT_THAT(with("  count: {function: f, reads: [los_mask]}\n"),
              HasSubstr("call count reads key 'los_mask', which nobody writes; "
                        "try 'loss_mask'"));
  EXPECT_THAT(complaint("roles:\n"
                        "  actor: {trained: true}\n"
                        "  judge: {like: actor}\n"
                        "calls: {train: {train: actor, fn: sft_loss}}\n"),
              HasSubstr("graph.yaml:3: workflow "));
  EXPECT_THAT(complaint("roles:\n"
                        "  actor: {trained: true}\n"
                        "  ref: {like: actr}\n"
                        "calls: {train: {train: actor, fn: sft_loss}}\n"),
              HasSubstr("graph.yaml:3: roles.ref.like: expected another role, "
                        "got 'actr'; try actor"));
}

TEST_F(WorkflowFileTest, UnknownNamesHaveTheirLineAndTheNearest) {
  EXPECT_THAT(
    with("  inf: {infer: actor, fn: logprob}\n"),
    HasSubstr("graph.yaml:4: calls.inf.fn: expected logprobs, "
              "top_logprobs, values or scores, got 'logprob'; try logprobs"));
  EXPECT_THAT(with("  inf: {infer: actor, fn: logprobs, "
                   "writes: {ref: logprob}}\n"),
              HasSubstr("got 'logprob'; try logprobs"));
  EXPECT_THAT(with("  inf: {infer: actor, fn: logprobs, writes: [ref]}\n"),
              HasSubstr("graph.yaml:4: calls.inf.writes: expected what "
                        "logprobs gives: logprobs, entropy, "));
  EXPECT_THAT(with("  inf: {infer: actor, fn: logprobs, writes: [ref]}\n"),
              HasSubstr("got 'ref'; try {ref: logprobs}"));
  EXPECT_THAT(with("  gen: {generate: actor, writes: {ids: sequences_ids}}\n"),
              HasSubstr("got 'sequences_ids'; try sequence_ids"));
  EXPECT_THAT(with("  inf: {infer: actor, fn: values}\n"),
              HasSubstr("graph.yaml:4: calls.inf.infer: expected a role with a "
                        "scalar head for values, got actor; try "
                        "`scalar_head: true` in roles.actor"));
  EXPECT_THAT(with("settings: [rolout]\n"), HasSubstr("try rollout"));
  EXPECT_THAT(with("settings: rollout\n"),
              HasSubstr("graph.yaml:4: settings: expected a list"));
  EXPECT_THAT(with("defaults: {algoritm: {kl_in: loss}}\n"),
              HasSubstr("graph.yaml:4: defaults.algoritm.kl_in: expected a "
                        "known setting, got 'algoritm.kl_in'; try "
                        "defaults.algorithm.kl_in"));
  EXPECT_THAT(with("defaults: {reward: rule}\n"),
              HasSubstr("graph.yaml:4: defaults.reward: expected a mapping of "
                        "settings, got 'rule'"));
  EXPECT_THAT(with("defaults: {algorithm: {kl_in: los}}\n"),
              HasSubstr("graph.yaml:4: defaults.algorithm.kl_in: expected one "
                        "of reward, loss or none, got 'los'; try loss"));
  EXPECT_THAT(complaint("calls: {}\n"),
              HasSubstr("roles: expected a mapping of names, got nothing"));
}

TEST_F(WorkflowFileTest, ACarriedValueIsANumberOrASettingThatIsOne) {
  EXPECT_EQ(carrying("{level: 2.5, other: {initial: run.seed}}"), "accepted");
  Settings settings;
  settings.run.seed = 7;
  EXPECT_THAT(
    from_file(file.string(), settings).carried,
    ElementsAre(CarriedValue{"level", 2.5, ""}, CarriedValue{"other", 7, ""}));
  EXPECT_THAT(carrying("{level: algorithm.kl_coeff}"),
              HasSubstr("graph.yaml:4: calls.count.carries.level: expected a "
                        "number, or a setting that is one, got "
                        "'algorithm.kl_coeff'; try algorithm.kl_coef"));
  EXPECT_THAT(carrying("{level: algorithm.kl_in}"),
              HasSubstr("expected a number, or a setting that is one"));
  EXPECT_THAT(carrying("{level: [1, 2]}"), HasSubstr("got a list; try 0"));
  EXPECT_THAT(carrying("{level: {metric: a/level}}"),
              HasSubstr("calls.count.carries.level.initial: expected what the "
                        "first step gets, got nothing"));
  EXPECT_THAT(carrying("{level: {inital: 1}}"), HasSubstr("try initial"));
  EXPECT_THAT(carrying("[level]"), HasSubstr("try {NAME: 0}"));
}

TEST_F(WorkflowFileTest, ACarriedValueHasOneCallAndNoOtherReaders) {
  const std::string first
    = "  first: {function: f, reads: [loss_mask], carries: {level: 0}}\n";
  EXPECT_THAT(
    with(first
         + "  other: {function: f, reads: [loss_mask], "
           "carries: {level: 0}}\n"),
    HasSubstr("graph.yaml:5: calls.other.carries: expected a value that no "
              "other call carries, got level, which first carries"));
  EXPECT_THAT(with(first + "  other: {function: f, reads: [level]}\n"),
              HasSubstr("graph.yaml:5: calls.other: expected keys of samples, "
                        "got 'level', which first carries from step to step; "
                        "try a key that first writes of it"));
  EXPECT_THAT(with("  inf: {infer: actor, fn: logprobs, carries: {a: 0}}\n"),
              HasSubstr("graph.yaml:4: calls.inf.carries: expected it in a "
                        "function"));
}

} // namespace
} // namespace troupe::plans
