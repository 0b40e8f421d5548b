// The context of a worker is made in the handler that also answers pings: it
// reads nothing that may take long.
#include "actors/worker_base/worker_context.hpp"
#include "plans/presets/presets.hpp"
#include "plans/workflow/workflow.hpp"

#include "tests/support/models/small_shape.hpp"
#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <future>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using support::write_text;

class WorkerContextTest : public ::testing::Test {
protected:
  WorkerContextTest() {
    std::filesystem::create_directories(folder_ / "base");
    write_text(folder_ / "base/config.json",
               print_hf_config(troupe::testing::small_shape()));
  }
  /// Returns what the master sends for GRPO by replay.
  JoinReply join_reply() const {
    JoinReply reply;
    reply.settings_yaml = "run: {name: replayed, steps: 1, replay: "
                          + replay_.string() + "}\nworkflow: grpo\nmodels:\n"
                          + "  actor: {path: " + (folder_ / "base").string()
                          + "}\ndata: {train: prompts.jsonl}\n"
                          + "reward: {kind: rule}\nrollout: {n: 2}\n";
    const auto workflow
      = plans::make_workflow(parse_settings(reply.settings_yaml, "test"));
    reply.plan_yaml = plans::print(plans::preset("single", workflow, {}));
    return reply;
  }
  /// Writes one recorded sample for whoever reads the pipe.
  void write_sample() const {
    write_text(replay_, R"({"step": 1, "sample": 5, "sequence_ids": [2, 3], )"
                        R"("loss_mask": [0, 1], "logprobs": [0, -1], )"
                        R"("finish_reason": "stop", "keys": {}})"
                        "\n");
  }

  const support::TempFolder folder_;
  const std::filesystem::path replay_ = folder_ / "replay";
};

TEST_F(WorkerContextTest, IsMadeWithoutReadingTheReplay) {
  ASSERT_EQ(::mkfifo(replay_.c_str(), 0600), 0); // whoever reads it waits
  auto made = std::async(std::launch::async,
                         [&] { return make_worker_context(join_reply()); });
  const bool at_once = made.wait_for(20s) == std::future_status::ready;
  if (!at_once)
    write_sample();
  const auto worker = made.get();
  ASSERT_TRUE(at_once);
  const auto before = worker->data.progress();
  auto reads = std::async(std::launch::async, [&] {
    return worker->data.replay()->num_samples(StepId{0});
  });
  write_sample();
  EXPECT_EQ(reads.get(), 1U);
  EXPECT_GT(worker->data.progress(), before) << "reading is progress";
  EXPECT_EQ(worker->data.reading(), "") << "it does no more";
}

} // namespace
} // namespace troupe::actors
