// Python functions in a workflow file: their scope, their keys, and mistakes
// with their line and the nearest name, without a program being started.
#include "config/settings/python_functions.hpp"
#include "config/settings/workflow_file.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace troupe {
namespace {

/// Returns the mistake that `attempt` throws.
template <class Attempt>
std::string refused_by(Attempt attempt) {
  try {
    attempt();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

struct PythonFunctionsTest : ::testing::Test {
  support::TempFolder folder;
  std::filesystem::path file = folder / "graph.yaml";

  WorkflowFile read(const std::string& check) {
    std::ofstream(file) << "roles: {actor: {trained: true}}\n"
                           "calls:\n"
                           "  check: "
                        << check
                        << "\n"
                           "  train: {train: actor, fn: sft_loss, reads: "
                           "[sequence_ids, loss_mask]}\n";
    return read_workflow_file(file.string());
  }
  std::string refused(const std::string& check) {
    return refused_by([&] { read(check); });
  }
  /// Returns the mistakes of a call of this function in `text`.
  std::string refused_name(const std::string& text, const std::string& name) {
    const auto path = (folder / "f.py").string();
    std::ofstream(path) << text;
    const FileCall call{
      .name = "check", .kind = "function", .role = "", .fn = path + ":" + name};
    return refused_by([&] { check_python_function(call, {"graph.yaml", 3}); });
  }
};

TEST_F(PythonFunctionsTest, HaveAScopeProcessesAndKeysOfTheirTypes) {
  const auto call
    = read("{function: f.py:g, scope: group, processes: 3, reads: [response, "
           "logprobs], writes: [keep, advantages]}")
        .calls.front();
  EXPECT_EQ(call.python->scope, "group");
  EXPECT_EQ(call.python->processes, 3);
  EXPECT_THAT(call.reads, ElementsAre("response", "logprobs"));
  EXPECT_THAT(call.writes, ElementsAre("keep", "advantages"));
  EXPECT_THAT(call.python->writes,
              ElementsAre(KeyInfo{"keep", KeyType::f32, Per::sample},
                          KeyInfo{"advantages", KeyType::f32, Per::token}));
  const auto typed
    = read("{function: f.py:g, reads: {logprobs: x}, writes: {a: numbers, b: "
           "integer, c: flags, d: text}}")
        .calls.front();
  EXPECT_EQ(typed.python->scope, "batch");
  EXPECT_EQ(typed.renames.front().second, "x");
  EXPECT_THAT(typed.python->writes,
              ElementsAre(KeyInfo{"a", KeyType::f32, Per::token},
                          KeyInfo{"b", KeyType::i32, Per::sample},
                          KeyInfo{"c", KeyType::u8, Per::token},
                          KeyInfo{"d", KeyType::text, Per::sample}));
}

TEST_F(PythonFunctionsTest, MistakesHaveTheirLineAndTheNearestWord) {
  EXPECT_THAT(refused("{function: f.py:g, scope: grup, reads: [x], writes: "
                      "[y]}"),
              HasSubstr("graph.yaml:3: calls.check.scope: expected sample, "
                        "group or batch, got 'grup'; try group"));
  EXPECT_THAT(refused("{function: f.py:g, reads: [x], writes: {y: number2}}"),
              HasSubstr("calls.check.writes.y: expected what it holds: number, "
                        "numbers, "));
  EXPECT_THAT(refused("{function: f.py:g, writes: [y]}"),
              HasSubstr("calls.check.reads: expected the keys of a Python "
                        "function, got nothing; try reads: [response]"));
  EXPECT_THAT(refused("{function: f.py:g, reads: [x]}"),
              HasSubstr("calls.check.writes: expected the keys"));
  EXPECT_THAT(refused("{function: f.py:g, reads: [x], writes: [y], processes: "
                      "0}"),
              HasSubstr("expected a number of processes from 1 to 256"));
  EXPECT_THAT(refused("{function: group_advantages, reads: [x], writes: [y], "
                      "scope: group}"),
              HasSubstr("calls.check.scope: expected it in a Python function "
                        "only, got it in a call of group_advantages"));
  EXPECT_THAT(refused("{infer: actor, fn: f.py:g, reads: [x]}"),
              HasSubstr("calls.check.fn: expected code that the program has, "
                        "got 'f.py:g', as Python computes functions and losses "
                        "only"));
  EXPECT_THAT(refused("{function: f.py:g, scope: sample, reads: [x], writes: "
                      "[y], carries: {z: 0}}"),
              HasSubstr("carried values in a function of scope batch"));
}

TEST_F(PythonFunctionsTest, ALossHasOutputsAndWhatItIsAMeanOver) {
  const auto call = read("{train: ref, fn: f.py:g, outputs: [logprobs, "
                         "entropy], mean_over: keep, reads: {a: keep}}")
                      .calls.front();
  EXPECT_THAT(call.python->outputs, ElementsAre("logprobs", "entropy"));
  EXPECT_EQ(call.python->mean_over, "keep");
  EXPECT_THAT(refused("{train: ref, fn: f.py:g, outputs: [logprob], reads: "
                      "[x]}"),
              HasSubstr("graph.yaml:3: calls.check.outputs: expected logprobs, "
                        "entropy, values or scores, got 'logprob'; try "
                        "logprobs"));
  EXPECT_THAT(refused("{train: ref, fn: f.py:g, outputs: [logprobs, values], "
                      "reads: [x]}"),
              HasSubstr("calls.check.outputs: expected outputs of one head"));
  EXPECT_THAT(refused("{train: ref, fn: f.py:g, mean_over: keeps, reads: "
                      "[keep]}"),
              HasSubstr("calls.check.mean_over: expected a key that the loss "
                        "reads, got 'keeps'; try keep"));
  EXPECT_THAT(refused("{train: ref, fn: f.py:g, scope: group, reads: [x]}"),
              HasSubstr("calls.check.scope: expected it in a Python function "
                        "only"));
  EXPECT_THAT(refused("{train: ref, fn: sft_loss, outputs: [logprobs], reads: "
                      "[x]}"),
              HasSubstr("calls.check.outputs: expected it in a Python loss "
                        "only, got it in a call of sft_loss; try fn: "
                        "FILE.py:NAME"));
}

TEST_F(PythonFunctionsTest, ALeaderWritesOneValuePerSampleBesideTheTokens) {
  const auto call = read("{generate: actor, fn: f.py:g, processes: 2, reads: "
                         "[prompt], writes: {asked: flag, note: text}}")
                      .calls.front();
  EXPECT_EQ(call.python->processes, 2);
  EXPECT_THAT(call.reads, ElementsAre("prompt"));
  EXPECT_THAT(call.writes, ElementsAre("sequence_ids", "loss_mask", "logprobs",
                                       "truncated", "asked", "note"));
  EXPECT_THAT(call.python->writes,
              ElementsAre(KeyInfo{"asked", KeyType::u8, Per::sample},
                          KeyInfo{"note", KeyType::text, Per::sample}));
  EXPECT_EQ(read("{generate: actor, fn: f.py:g}").calls.front().writes.size(),
            4U);
  EXPECT_THAT(
    refused("{generate: actor, fn: f.py:g, writes: [advantages]}"),
    HasSubstr("graph.yaml:3: calls.check.writes: expected keys of one "
              "value per sample: number, integer, flag, text, got "
              "'advantages', of values per token"));
  EXPECT_THAT(refused("{generate: actor, fn: f.py:g, writes: [logprobs]}"),
              HasSubstr("calls.check.writes: expected keys that neither the "
                        "conversation nor this list has yet, got 'logprobs'"));
  EXPECT_THAT(refused("{generate: actor, fn: f.py:g, reads: [response]}"),
              HasSubstr("calls.check.reads: expected what there is before the "
                        "conversation, beside its prompt, got 'response'; try "
                        "sample.response"));
  EXPECT_THAT(refused("{generate: actor, fn: f.py:g, scope: sample}"),
              HasSubstr("calls.check.scope: expected it in a Python function "
                        "only"));
}

TEST_F(PythonFunctionsTest, ALeaderIsAsyncAndAFunctionIsNot) {
  const auto path = (folder / "talk.py").string();
  std::ofstream(path) << "async def solve(model, sample):\n  pass\n"
                         "def plain(model, sample):\n  pass\n";
  const auto refused_as = [&](const std::string& kind,
                              const std::string& name) {
    const FileCall call{
      .name = "check", .kind = kind, .role = "", .fn = path + ":" + name};
    return refused_by([&] { check_python_function(call, {"graph.yaml", 3}); });
  };
  EXPECT_EQ(refused_as("generate", "solve"), "accepted");
  EXPECT_EQ(refused_as("function", "plain"), "accepted");
  EXPECT_THAT(refused_as("generate", "plain"),
              HasSubstr("graph.yaml:3: calls.check.fn: expected an async "
                        "function, which leads a conversation, got 'plain'; "
                        "try async def plain(model, sample):"));
  EXPECT_THAT(refused_as("function", "solve"),
              HasSubstr("calls.check.function: expected a function that is not "
                        "async, got 'solve'"));
}

TEST_F(PythonFunctionsTest, AFunctionIsThatOfOneCall) {
  EXPECT_THAT(
    refused("{function: f.py:g, reads: [x], writes: [y]}\n"
            "  again: {function: f.py:g, reads: [x], writes: [z]}"),
    HasSubstr("graph.yaml:4: calls.again.function: expected a Python function "
              "that no other call has, got f.py:g, which is that of check; try "
              "another name for it in the file: again = g"));
}

TEST_F(PythonFunctionsTest, AFileHasTheFunction) {
  const std::string text = "from math import pi, sqrt\n"
                           "def check(response):\n"
                           "  def inner(): pass\n"
                           "other = check\n"
                           "typed: int = 3\n";
  for (const char* name : {"check", "other", "sqrt", "typed"})
    EXPECT_EQ(refused_name(text, name), "accepted") << name;
  EXPECT_THAT(refused_name(text, "chek"),
              HasSubstr("graph.yaml:3: calls.check.function: expected a "
                        "function of "));
  EXPECT_THAT(refused_name(text, "chek"), HasSubstr("got 'chek'; try check"));
  EXPECT_THAT(refused_name(text, "inner"), HasSubstr("got 'inner'"));
  EXPECT_EQ(refused_name("from other import *\n", "check"), "accepted");
  const FileCall nowhere{
    .name = "check", .kind = "function", .role = "", .fn = "nowhere.py:check"};
  EXPECT_THAT(refused_by([&] { check_python_function(nowhere, {}); }),
              HasSubstr("expected a Python file, got 'nowhere.py', which "
                        "cannot be read"));
}

} // namespace
} // namespace troupe
