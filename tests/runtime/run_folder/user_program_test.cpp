#include "config/base/error.hpp"
#include "plans/workflow/user_workflow.hpp"
#include "runtime/run_folder/user_program.hpp"

#include "troupe/actor.hpp"
#include "troupe/app.hpp"
#include "troupe/loss.hpp"
#include <gmock/gmock.h>

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using troupe::Key;
using troupe::Workflow;
using troupe::keys::response;

constexpr Key<float> score{"score"};
constexpr Key<float> other{"other"};

float length_of(const std::string& text) {
  return static_cast<float>(text.size());
}
float longer(const std::string& text, float x) {
  return static_cast<float>(text.size()) + x;
}
troupe::Loss no_loss(const troupe::TrainBatch&) {
  throw std::logic_error("only registered here");
}

struct Nothing {};
using Self = troupe::SampleActor::stateful_pointer<Nothing>;
troupe::SampleActor::behavior_type idle(Self) {
  return {[](troupe::run_atom, troupe::Sample sample) { return sample; }};
}

troupe::SampleActor::behavior_type busy(Self) {
  return {[](troupe::run_atom, troupe::Sample sample) { return sample; }};
}

Workflow generating(const char* name) {
  Workflow w{name};
  w.role("actor", troupe::frozen);
  w.generate("actor_gen", "actor");
  return w;
}

std::string complaint(const troupe::App& app) {
  try {
    troupe::runtime::register_user_program(app.program());
  } catch (const troupe::ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

std::string complaint(const Workflow& workflow) {
  return complaint(troupe::App{}.add(workflow));
}

TEST(UserProgram, AnUnwrittenKeyIsNamed) {
  auto w = generating("own_orphan");
  w.each("twice", longer, reads(response, other), writes(score));
  EXPECT_THAT(complaint(w),
              HasSubstr("own_orphan: call twice reads key 'other', "
                        "which nobody writes; try a call that does, or "
                        "troupe::Key<std::string>, as columns of the data "
                        "file (data.fields) are texts"));
}

TEST(UserProgram, AKeyHasOneWriter) {
  auto w = generating("own_twice");
  w.each("one", length_of, reads(response), writes(score));
  w.each("two", length_of, reads(response), writes(score));
  EXPECT_THAT(complaint(w), HasSubstr("key score has two writers: one and"));
}

TEST(UserProgram, AKeyHasOneTypeEverywhere) {
  auto w = generating("own_types");
  w.each("length", length_of, reads(response), writes(score));
  w.each(
    "whole", [](std::int32_t count) { return static_cast<float>(count); },
    reads(Key<std::int32_t>{"score"}), writes(other));
  w.metric("own/other", other);
  EXPECT_THAT(complaint(w),
              HasSubstr("key score is Key<float> in length and "
                        "Key<std::int32_t> in whole; try the same in both"));
}

TEST(UserProgram, AKeyOfBuiltInCallsHasTheirType) {
  auto w = generating("own_infer");
  w.infer("again", "actor", troupe::Infer::logprobs, writes(score));
  w.metric("own/score", score);
  EXPECT_THAT(complaint(w), HasSubstr("key score is Key<float, per_token> in "
                                      "again and Key<float> in again"));
}

TEST(UserProgram, ARoleHasOneTrainCall) {
  Workflow w{"own_twice_trained"};
  w.role("actor", troupe::trained);
  w.generate("actor_gen", "actor");
  w.train("one", "actor", no_loss, troupe::reads());
  w.train("two", "actor", no_loss, troupe::reads());
  EXPECT_THAT(complaint(w), HasSubstr("role actor is trained by two calls"));
}

TEST(UserProgram, AModelWithoutAScalarHeadGivesNoValues) {
  constexpr Key<float, troupe::per_token> said{"said"};
  const auto judged = [&](troupe::RoleKind judge, troupe::Infer what) {
    auto w = generating("own_heads");
    w.role("judge", std::move(judge));
    if (what == troupe::Infer::scores)
      w.infer("ask", "judge", what, writes(score));
    else
      w.infer("ask", "judge", what, writes(said));
    return complaint(w);
  };
  EXPECT_THAT(judged(troupe::frozen, troupe::Infer::values),
              HasSubstr("workflow own_heads: call ask: expected a role with a "
                        "scalar head for values, got judge; try role judge "
                        "with `.scalar_head()`"));
  EXPECT_THAT(judged(troupe::frozen, troupe::Infer::scores),
              HasSubstr("a scalar head for scores"));
  EXPECT_THAT(judged(troupe::frozen.scalar_head(), troupe::Infer::logprobs),
              HasSubstr("expected a role without a scalar head for logprobs, "
                        "got judge; try role judge without"));
}

TEST(UserProgram, AModelWithAScalarHeadDoesNotGenerate) {
  Workflow w{"own_mute"};
  w.role("critic", troupe::frozen.scalar_head());
  w.generate("critic_gen", "critic");
  w.each("score", length_of, reads(response), writes(score));
  w.metric("score", score);
  EXPECT_THAT(complaint(w),
              HasSubstr("call critic_gen: expected a role without "
                        "a scalar head for generation"));
}

TEST(UserProgram, AnUnregisteredActorIsNamed) {
  auto w = generating("own_idle");
  w.each("wait", idle, reads(response), writes(score));
  EXPECT_THAT(complaint(w), HasSubstr("add .spawnable(\"wait\", ..)"));
}

TEST(UserProgram, TwoActorsOfOneNameAreBothReported) {
  auto w = generating("own_two_actors");
  w.each("wait", idle, reads(response), writes(score));
  w.metric("own/score", score);
  EXPECT_EQ(
    complaint(
      troupe::App{}.spawnable("judge", idle).spawnable("judge", busy).add(w)),
    "two spawnables are named judge: one for call wait of "
    "own_two_actors, one for no call; try another name for one");
  EXPECT_EQ(
    complaint(
      troupe::App{}.spawnable("one", idle).spawnable("two", idle).add(w)),
    "spawnables one and two are the same actor; try a factory function for "
    "each");
}

TEST(UserProgram, TwoCallsOfOneNameAreAMistakeInTheProgram) {
  auto w = generating("own_two_calls");
  w.each("size", length_of, reads(response), writes(score));
  w.each("size", length_of, reads(response), writes(other));
  w.metric("own/score", score).metric("own/other", other);
  EXPECT_THAT(complaint(w), HasSubstr("size"));
}

constexpr troupe::Carried<float> level{"level", 2.F};

TEST(UserProgram, ACarriedValueHasOneWriterThatIsItsReader) {
  const auto length = [](Workflow& w) {
    w.each("length", length_of, reads(response), writes(score));
  };
  const auto mean = [](std::span<const float>) { return 1.F; };
  auto twice = generating("own_carried_twice");
  length(twice);
  twice.batch("one", mean, reads(score), writes(level));
  twice.batch("two", mean, reads(score), writes(level));
  EXPECT_THAT(complaint(twice),
              HasSubstr("carried value level has two writers: one and two"));
  auto other_reader = generating("own_carried_reader");
  length(other_reader);
  other_reader.batch("mean", mean, reads(score), writes(level));
  other_reader.batch(
    "above", [](std::span<const float>, float) { return 1.F; },
    reads(score, level), writes(troupe::Carried<float>{"more", 0}));
  EXPECT_THAT(complaint(other_reader),
              HasSubstr("call above reads carried value level, which mean "
                        "writes; try a key that mean writes from it"));
  auto misspelt = generating("own_carried_orphan");
  length(misspelt);
  misspelt.batch("mean", mean, reads(score), writes(level));
  misspelt.metric("own/level", troupe::Carried<float>{"levle", 0});
  EXPECT_THAT(complaint(misspelt),
              HasSubstr("metric own/level reads carried value 'levle', which "
                        "nobody writes; try 'level'"));
}

TEST(UserWorkflow, ACarriedValueHasItsStartAndMetric) {
  auto w = generating("own_carried");
  w.each("length", length_of, reads(response), writes(score));
  w.batch(
    "raise", [](std::span<const float>, float now) { return now + 1; },
    reads(score, level), writes(level));
  w.metric("own/level", level);
  const auto made = troupe::plans::user_workflow(w.parts());
  EXPECT_THAT(made.carried, ElementsAre(troupe::plans::CarriedValue{
                              "level", 2, "own/level"}));
  EXPECT_THAT(made.call("raise").reads, ElementsAre("score"));
  EXPECT_THAT(made.call("raise").writes, ElementsAre());
  EXPECT_EQ(complaint(w), "accepted");
}

TEST(UserProgram, AMetricHasAUniqueName) {
  const auto shown = [](const char* first, const char* second) {
    auto w = generating("own_shown");
    w.each("score", length_of, reads(response), writes(score));
    w.metric(first, score).metric(second, score);
    return complaint(w);
  };
  EXPECT_THAT(shown("own/score", "own/score"),
              HasSubstr("own_shown: two metrics are named own/score"));
  EXPECT_THAT(shown("own/score", "step"),
              HasSubstr("no metric can be named 'step'; try own_shown/NAME"));
}

TEST(UserProgram, AWorkflowHasAPlainName) {
  EXPECT_THAT(complaint(generating("grpo.yaml")),
              HasSubstr("workflow 'grpo.yaml' needs a name of letters"));
  EXPECT_THAT(complaint(generating("")), HasSubstr("workflow '' needs a name"));
}

struct Speed {
  int speed = 1;
};
troupe::SampleActor::behavior_type fast(Self, Speed) {
  return {[](troupe::run_atom, troupe::Sample sample) { return sample; }};
}

TEST(UserProgram, ASectionOfAnActorMustBeInTheApp) {
  const auto section = troupe::Section<Speed>("own_speed");
  EXPECT_THAT(complaint(troupe::App{}.spawnable("racer", fast, section)),
              HasSubstr("spawnable racer takes settings of section own_speed, "
                        "which the App does not have; add .add(SECTION)"));
}

TEST(UserProgram, AMeanIsOverAKeyThatIsRead) {
  auto w = generating("own_mean");
  w.each("score", length_of, reads(response), writes(score));
  w.train("actor_train", "actor", no_loss, troupe::reads(), mean_over(score));
  EXPECT_THAT(complaint(w), HasSubstr("actor_train is a mean over score, which "
                                      "is not in its reads()"));
}

TEST(UserWorkflow, ReadsAResponseAsItsTokensAndTextsFromTheDataSet) {
  auto w = generating("own_reads");
  w.each(
    "score", [](const std::string&, const std::string&) { return 1.F; },
    reads(response, troupe::keys::ground_truth), writes(score));
  const auto made = troupe::plans::user_workflow(w.parts());
  EXPECT_THAT(made.call("score").reads,
              ElementsAre("sequence_ids", "loss_mask", "ground_truth"));
  EXPECT_THAT(made.dataset_keys, ElementsAre("prompt_ids", "ground_truth"));
}

TEST(UserWorkflow, ARewardHasTheRequestedKey) {
  auto w = generating("own_reward");
  w.reward("judge", writes(score));
  const auto made = troupe::plans::user_workflow(w.parts());
  const auto& call = made.call("judge");
  EXPECT_EQ(call.fn, "rewards");
  EXPECT_EQ(call.argument("score"), "scores");
  EXPECT_THAT(call.reads, ElementsAre("sequence_ids", "loss_mask"));
  const auto groups = troupe::plans::user_traits(w.parts(), {}).groups;
  EXPECT_THAT(groups, ::testing::Contains(troupe::SettingsGroup::rewards));
}

TEST(UserWorkflow, ResponsesOfASecondModelHaveAPrefix) {
  auto w = generating("own_prefix");
  w.role("b", troupe::trained.like("actor"));
  w.generate("b_gen", "b", troupe::keys::prompt_ids, "b_");
  w.each("score", length_of, reads(Key<std::string>{"b_response"}),
         writes(score));
  const auto made = troupe::plans::user_workflow(w.parts());
  EXPECT_THAT(made.call("score").reads,
              ElementsAre("b_sequence_ids", "b_loss_mask"));
  EXPECT_EQ(made.call("b_gen").argument("b_logprobs"), "logprobs");
  constexpr Key<float, troupe::per_token> said{"said"};
  w.infer("b_inf", "b", troupe::Infer::logprobs, writes(said), "b_");
  const auto asked = troupe::plans::user_workflow(w.parts()).call("b_inf");
  EXPECT_THAT(asked.reads, ElementsAre("b_sequence_ids", "b_loss_mask"));
  EXPECT_EQ(asked.argument("b_sequence_ids"), "sequence_ids");
  EXPECT_EQ(asked.argument("said"), "logprobs");
  EXPECT_THAT(made.dataset_keys, ElementsAre("prompt_ids"));
}

} // namespace
