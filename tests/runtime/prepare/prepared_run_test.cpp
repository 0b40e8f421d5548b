// The checks and decisions of a run before it starts anything.
#include "config/base/error.hpp"
#include "plans/cost/hardware.hpp"
#include "runtime/metrics/run_tables.hpp"
#include "runtime/planner/memory_table.hpp"
#include "runtime/prepare/prepared_run.hpp"
#include "runtime/run_folder/run_folder.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include "tests/support/runtime/tiny_model.hpp"
#include <gmock/gmock.h>

namespace fs = std::filesystem;
using namespace troupe;
using namespace troupe::runtime;
using ::testing::AllOf;
using ::testing::HasSubstr;
using troupe::test::read_text;
using troupe::test::TempFolder;
using troupe::test::tiny_shape;
using troupe::test::write_text;
using troupe::test::write_tiny_model;
using troupe::test::write_tiny_tokenizer;

namespace {

class PreparedRunTest : public ::testing::Test {
protected:
  PreparedRunTest() {
    write_tiny_model(temp_.path() / "base");
    std::string rows;
    for (int i = 0; i < 10; ++i)
      rows += "{\"prompt\": \"a b\", \"completion\": \"c d\"}\n";
    write_text(temp_.path() / "sft.jsonl", rows);
    // a measured machine: nothing is measured, and no home folder is written
    const auto cache = temp_.path() / "cache";
    fs::create_directories(cache / "troupe");
    write_text(cache / "troupe/hardware.yaml",
               plans::shipped_hardware_text("laptop"));
    setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  }

  Settings settings(std::vector<std::string> more = {}) const {
    const auto file = temp_.path() / "sft.yaml";
    write_text(file, "run: {steps: 5, dir: " + (temp_.path() / "runs").string()
                       + "}\nworkflow: sft\nmodels:\n  actor:\n    path: "
                       + (temp_.path() / "base").string()
                       + "\ndata: {train: " + data().string()
                       + ", batch_size: 4, max_tokens: 32}\n");
    return load_settings({file.string()}, more);
  }
  fs::path data() const {
    return temp_.path() / "sft.jsonl";
  }
  std::string error_of(std::vector<std::string> more) const {
    try {
      prepare(settings(std::move(more)));
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }
  /// Files as a run of 5 steps with a checkpoint after step 3 leaves them.
  void leave_a_run() const {
    const auto run = prepare(settings());
    const auto lock = begin_attempt(run);
    const RunFolder folder(run.attempt.folder);
    write_text(folder.checkpoint(3) / "manifest.json", "{}");
    fs::create_directories(folder.checkpoint(3) / "state");
    write_text(folder.checkpoint(3) / "state" / "run.json",
               R"({"next_step": 3, "versions": {}, "carried_bits": {},
                   "early_calls": [], "run_id": "test"})");
    write_text(folder.metrics_file(),
               "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"step\":4}\n");
  }

  TempFolder temp_;
};

TEST_F(PreparedRunTest, LeavesNoAutoInTheCluster) {
  const auto run = prepare(settings());
  EXPECT_EQ(run.work.settings.cluster.nodes, 1);
  EXPECT_EQ(run.work.settings.cluster.devices_per_node, 1);
  EXPECT_EQ(run.work.settings.cluster.workers_per_node, 1);
  EXPECT_EQ(run.work.plan_name, "single (chosen by auto)");
  EXPECT_EQ(run.data.num_rows, 10u);
  EXPECT_EQ(run.steps.end, 5u);
  EXPECT_EQ(run.work.samples_per_step, 4u);
  EXPECT_EQ(run.attempt.number, 1u);
  EXPECT_FALSE(run.attempt.continues());
}

TEST_F(PreparedRunTest, OnlyTrainingWaitsForACheckpointAfterASignal) {
  PreparedRun run;
  EXPECT_EQ(run.mode(), RunMode::train);
  EXPECT_FALSE(run.stops_at_once());
  for (const ModeOptions& options : std::vector<ModeOptions>{
         CommandMode{}, ConvertMode{}, MoveCheckMode{}, EvaluateMode{}}) {
    run.mode_options = options;
    EXPECT_TRUE(run.stops_at_once());
  }
  EXPECT_EQ(run.mode(), RunMode::evaluate);
}

TEST_F(PreparedRunTest, PreparingWritesNothing) {
  prepare(settings());
  EXPECT_FALSE(fs::exists(temp_.path() / "runs"));
}

TEST_F(PreparedRunTest, EpochsBecomeSteps) {
  const auto run = prepare(settings({"run.steps=null", "run.epochs=2"}));
  EXPECT_EQ(run.steps.end, 5u); // 20 rows in steps of 4
  EXPECT_EQ(run.work.settings.run.steps, 5);
  // workers that parse it again get the same error
  EXPECT_EQ(parse_settings(print_settings(run.work.settings), "x").run.steps,
            5);
}

TEST_F(PreparedRunTest, MissingFilesAreNamedAtTheirPlace) {
  EXPECT_THAT(error_of({"models.actor.path=/nowhere"}),
              AllOf(HasSubstr("command line: models.actor.path"),
                    HasSubstr("'/nowhere'")));
  EXPECT_THAT(error_of({"data.train=/nowhere.jsonl"}), HasSubstr("data.train"));
  write_text(data(), "{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"pro\n");
  EXPECT_THAT(error_of({}), HasSubstr("sft.jsonl:2"));
}

TEST_F(PreparedRunTest, ATokenizerThatDoesNotFitIsRefused) {
  auto shape = tiny_shape();
  shape.vocab_size = 4;
  write_tiny_model(temp_.path() / "base", shape);
  EXPECT_THROW(prepare(settings()), ConfigError);
}

TEST_F(PreparedRunTest, AModelWithoutItsWeightsIsRefused) {
  fs::remove(temp_.path() / "base" / "model.safetensors");
  EXPECT_THROW(prepare(settings()), ConfigError);
  EXPECT_NO_THROW(plan_work(settings())); // plans need no weights
}

TEST_F(PreparedRunTest, APlanThatCannotRunIsAPlanError) {
  EXPECT_THROW(
    prepare(settings({"cluster.devices_per_node=8", "plan=data_parallel"})),
    PlanError); // 4 samples over 8 devices
  const auto run = prepare(settings({"cluster.devices_per_node=8"}));
  EXPECT_THAT(run.work.plan_name, HasSubstr("(chosen by auto)"));
  EXPECT_TRUE(run.work.report.ok());
  EXPECT_FALSE(run.work.plan_why.empty()) << "what the next best lose";
}

TEST_F(PreparedRunTest, AnAttemptClaimsTheFolder) {
  const auto run = prepare(settings());
  const auto lock = begin_attempt(run);
  const RunFolder folder(run.attempt.folder);
  EXPECT_TRUE(is_active(folder));
  EXPECT_EQ(read_text(folder.config_file()), print_settings(run.work.settings));
  EXPECT_EQ(read_text(folder.attempt_folder(1) / "plan.yaml"),
            plans::print(run.work.plan));
  EXPECT_THAT(read_text(folder.dataflow_file()), HasSubstr("actor_train"));
  EXPECT_THAT(error_of({}), HasSubstr("active in another process"));
}

TEST_F(PreparedRunTest, AResumedRunIsTruncatedToItsCheckpoint) {
  leave_a_run();
  const auto run = prepare(settings());
  EXPECT_TRUE(run.attempt.continues());
  EXPECT_EQ(run.steps.first, 3u);
  EXPECT_EQ(run.attempt.number, 2u);
  const RunFolder folder(run.attempt.folder);
  EXPECT_EQ(run.attempt.checkpoint, folder.checkpoint(3));
  const auto lock = begin_attempt(run);
  EXPECT_EQ(read_text(folder.metrics_file()),
            "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
  EXPECT_TRUE(fs::exists(folder.attempt_folder(2) / "config.yaml"));
}

TEST_F(PreparedRunTest, ResumeRefusesWhatChangesTheResult) {
  leave_a_run();
  EXPECT_THAT(
    error_of({"models.actor.optimizer.lr=0.5"}),
    AllOf(HasSubstr("models.actor.optimizer.lr was"), HasSubstr("is 0.5")));
  EXPECT_EQ(error_of({"run.steps=9", "run.save_every=2", "run.keep=1",
                      "run.max_time=1h", "trace.enabled=false"}),
            "no error");
  EXPECT_TRUE(prepare(settings({"run.resume=force", "data.batch_size=2"}))
                .attempt.continues());
}

TEST_F(PreparedRunTest, FreshMovesTheOldRunAway) {
  leave_a_run();
  const auto run = prepare(settings({"run.resume=fresh", "run.seed=9"}));
  EXPECT_FALSE(run.attempt.continues());
  EXPECT_EQ(run.attempt.number, 1u);
  const auto lock = begin_attempt(run);
  const RunFolder old(run.attempt.folder.string() + ".1");
  EXPECT_TRUE(old.exists());
  EXPECT_EQ(RunFolder(run.attempt.folder).checkpoints().size(), 0u);
}

TEST_F(PreparedRunTest, TablesShowTheDerivedNumbers) {
  const auto run = prepare(settings());
  EXPECT_THAT(batch_table(run),
              AllOf(HasSubstr("rows a step"), HasSubstr("of 10 in"),
                    HasSubstr("2.00 passes over the data")));
  EXPECT_THAT(plan_table(run.work),
              AllOf(HasSubstr("1 device"), HasSubstr("d1")));
  EXPECT_THAT(memory_table(run.work.report), HasSubstr("peak memory"));
}

} // namespace
