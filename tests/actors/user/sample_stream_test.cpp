#include "actors/user/sample_stream.hpp"
#include "actors/worker_base/user_calls.hpp"

#include "troupe/actor.hpp"
#include <gmock/gmock.h>

namespace {

using ::testing::ElementsAre;
using namespace troupe;
using namespace troupe::actors;
using plans::CallKind;

std::vector<std::string> names(const std::vector<const plans::Call*>& calls) {
  std::vector<std::string> list;
  for (const auto* call : calls)
    list.push_back(call->name);
  return list;
}

TEST(SampleStream, ACallOfOneGenerationAndTheDataSetStartsPerSample) {
  const auto fn = std::string("made_samples_test.actor");
  add_user_entry(fn, {.call = {.name = fn},
                      .actor = {.name = fn, .spawner = [](Spawn&) {}}});
  add_user_entry("made_samples_test.function",
                 {.call = {.name = "made_samples_test.function"}});
  const plans::Workflow workflow{
    .calls
    = {{.name = "a_gen", .kind = CallKind::generate, .writes = {"a", "a_mask"}},
       {.name = "b_gen", .kind = CallKind::generate, .writes = {"b"}},
       {.name = "check", .reads = {"a", "text"}, .fn = fn},
       {.name = "judge", .reads = {"a", "b"}, .fn = fn},
       {.name = "other", .reads = {"text"}, .fn = fn},
       {.name = "plain", .reads = {"a"}, .fn = "made_samples_test.function"},
       {.name = "score", .reads = {"a", "a_mask"}, .fn = "rewards"}}};
  EXPECT_THAT(names(readers_of_one(workflow, workflow.calls[0])),
              ElementsAre("check", "score"));
  EXPECT_TRUE(readers_of_one(workflow, workflow.calls[1]).empty());
}

} // namespace
