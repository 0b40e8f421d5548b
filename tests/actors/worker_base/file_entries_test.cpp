// Types of the keys of Python functions: by who writes them, or by their name.
#include "actors/worker_base/file_entries.hpp"
#include "actors/worker_base/user_calls.hpp"
#include "config/base/error.hpp"
#include "models/losses/loss.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <fstream>

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace troupe::actors {
namespace {

struct FileEntries : ::testing::Test {
  support::TempFolder folder;

  /// Adds the entries of a workflow with these calls and metrics.
  void add(const std::string& calls, const std::string& metrics = "{}") {
    const auto file = folder / "entries.yaml";
    std::ofstream(file) << "roles: {actor: {trained: true}}\n"
                           "calls:\n"
                           "  actor_gen: {generate: actor}\n"
                        << calls
                        << "  train: {train: actor, fn: sft_loss, reads: "
                           "[sequence_ids, loss_mask]}\n"
                           "metrics: "
                        << metrics << "\n";
    add_file_entries(read_workflow_file(file.string()));
  }
  std::string refused(const std::string& calls, const std::string& metrics) {
    try {
      add(calls, metrics);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(FileEntries, KeysHoldWhatTheirWritersMakeOfThem) {
  add("  ref_inf: {infer: actor, fn: logprobs, writes: {theirs: logprobs}}\n"
      "  one: {function: keys.py:one, reads: [response, level, theirs], "
      "writes: {x: integers}}\n"
      "  two: {function: keys.py:two, scope: group, reads: {x: y}, writes: "
      "[z], processes: 3}\n");
  const auto* one = find_user_entry("keys.py:one");
  ASSERT_NE(one, nullptr);
  EXPECT_THAT(one->call.reads,
              ElementsAre(KeyInfo{"response", KeyType::text, Per::sample},
                          KeyInfo{"level", KeyType::text, Per::sample},
                          KeyInfo{"theirs", KeyType::f32, Per::token}));
  const auto* two = find_user_entry("keys.py:two");
  ASSERT_NE(two, nullptr);
  EXPECT_THAT(two->call.reads,
              ElementsAre(KeyInfo{"y", KeyType::i32, Per::token}));
  EXPECT_EQ(two->call.kind, detail::UserKind::groups);
  EXPECT_EQ(two->python->function.name, "two");
  EXPECT_EQ(two->python->processes, 3);
}

TEST_F(FileEntries, ALeaderOfConversationsIsAnActorOfItsGeneration) {
  add("  talk: {generate: actor, fn: lead.py:talk, processes: 2, reads: "
      "[prompt, level], writes: {asked: integer}}\n"
      "  after: {function: lead.py:after, reads: [asked, logprobs], writes: "
      "[z]}\n");
  const auto* talk = find_user_entry("lead.py:talk");
  ASSERT_NE(talk, nullptr);
  EXPECT_EQ(talk->call.kind, detail::UserKind::generate);
  EXPECT_EQ(talk->actor.name, "talk");
  EXPECT_EQ(talk->python->processes, 2);
  EXPECT_THAT(talk->call.reads,
              ElementsAre(KeyInfo{"prompt", KeyType::text, Per::sample},
                          KeyInfo{"level", KeyType::text, Per::sample}));
  EXPECT_THAT(talk->call.writes,
              ElementsAre(KeyInfo{"asked", KeyType::i32, Per::sample}));
  EXPECT_THAT(find_user_entry("lead.py:after")->call.reads,
              ElementsAre(KeyInfo{"asked", KeyType::i32, Per::sample},
                          KeyInfo{"logprobs", KeyType::f32, Per::token}));
}

TEST_F(FileEntries, AnEqualEntryStaysWhereItIsAndAnotherReplacesIt) {
  const std::string call = "  same: {function: same.py:f, reads: [response], "
                           "writes: [";
  add(call + "a]}\n");
  const auto* entry = find_user_entry("same.py:f");
  add(call + "a]}\n");
  EXPECT_EQ(find_user_entry("same.py:f"), entry);
  add(call + "b]}\n");
  EXPECT_EQ(find_user_entry("same.py:f")->call.writes.front().name, "b");
}

TEST_F(FileEntries, AreNoPartOfTheIdentityOfABinary) {
  add("  mine: {function: mine.py:f, reads: [response], writes: [m]}\n");
  for (const auto& name : user_names())
    EXPECT_EQ(name.find("mine.py"), name.npos);
}

TEST_F(FileEntries, ALossGetsItsKeysUnderItsOwnNamesAndNoTexts) {
  add("  own_train: {train: other, fn: loss.py:f, mean_over: w, reads: "
      "{sequence_ids: sequence_ids, loss_mask: loss_mask, logprobs: old, "
      "weight: w}}\n"
      "  weigh: {function: loss.py:weigh, reads: [response], writes: "
      "[weight]}\n");
  const auto& loss = models::losses().find("loss.py:f");
  EXPECT_THAT(loss.columns, ElementsAre("old", "w"));
  EXPECT_EQ(loss.mean_over, "w");
  EXPECT_EQ(loss.metric_prefix, "other/");
  EXPECT_TRUE(loss.exposes.logprobs);
  EXPECT_FALSE(loss.exposes.entropy);
  EXPECT_EQ(loss.python->name, "f");
  EXPECT_THAT(refused("  own_train: {train: other, fn: loss.py:f, reads: "
                      "[sequence_ids, loss_mask, ground_truth]}\n",
                      "{}"),
              HasSubstr("calls.own_train.reads: expected keys of numbers that "
                        "a call writes, got 'ground_truth', a text"));
}

TEST_F(FileEntries, AMetricIsAKeyOfNumbers) {
  EXPECT_THAT(refused("", "{said: response}"),
              HasSubstr("metrics.said: expected a key of numbers that a call "
                        "writes, got 'response'"));
}

TEST_F(FileEntries, AResponseKeepsItsName) {
  EXPECT_THAT(refused("  told: {function: told.py:f, reads: {response: x}, "
                      "writes: [t]}\n",
                      "{}"),
              HasSubstr("calls.told.reads: expected response under its own "
                        "name, got it as x"));
}

} // namespace
} // namespace troupe::actors
