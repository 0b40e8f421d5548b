// The first start of a run reads data.train; later ones and workers use its
// index unless something on which it depends has changed.
#include "actors/worker_base/worker_context.hpp"
#include "plans/cost/hardware.hpp"
#include "runtime/prepare/prepared_run.hpp"
#include "runtime/session/run_basis.hpp"
#include "runtime/session/session_setup.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include "tests/support/runtime/tiny_model.hpp"
#include <gmock/gmock.h>

namespace fs = std::filesystem;
using namespace troupe;
using namespace troupe::runtime;
using ::testing::HasSubstr;
using troupe::test::read_text;
using troupe::test::TempFolder;
using troupe::test::write_text;
using troupe::test::write_tiny_model;

namespace {

class RunRowsTest : public ::testing::Test {
protected:
  RunRowsTest() {
    write_tiny_model(temp_.path() / "base");
    for (int i = 0; i < 1000; ++i)
      rows_ += "{\"prompt\": \"a b\", \"completion\": \"c d\"}\n";
    write_text(data(), rows_);
  }

  fs::path data() const {
    return temp_.path() / "sft.jsonl";
  }
  fs::path index() const {
    return temp_.path() / "runs/sft/data.index";
  }
  PreparedRun prepared(const std::vector<std::string>& more = {}) const {
    const auto file = temp_.path() / "sft.yaml";
    write_text(file, "run: {name: sft, steps: 5, dir: "
                       + (temp_.path() / "runs").string()
                       + "}\nworkflow: sft\nmodels:\n  actor:\n    path: "
                       + (temp_.path() / "base").string()
                       + "\ncluster: {devices_per_node: 1}\nplan: single\n"
                         "data: {train: "
                       + data().string()
                       + ", batch_size: 4, max_tokens: 32}\n");
    return prepare(load_settings({file.string()}, more));
  }
  /// Starts the run; returns true if it read every row.
  bool start_reads(const std::vector<std::string>& more = {}) const {
    const auto run = prepared(more);
    begin_attempt(run);
    return run.data.rows.data->was_read();
  }

  TempFolder temp_;
  std::string rows_;
};

TEST_F(RunRowsTest, AreReadOnlyByTheFirstStart) {
  EXPECT_TRUE(start_reads());
  EXPECT_FALSE(start_reads());
  EXPECT_FALSE(start_reads({"run.seed=7", "run.resume=fresh"}));
  EXPECT_FALSE(start_reads({"run.seed=7"}))
    << "the folder that was made anew has its index";
}

TEST_F(RunRowsTest, ArePreparedWithoutWritingAnything) {
  prepared();
  EXPECT_FALSE(fs::exists(temp_.path() / "runs"));
}

TEST_F(RunRowsTest, AreReadAgainAfterTheDataChanged) {
  start_reads();
  rows_[rows_.size() - 6] = 'a'; // of the same size
  write_text(data(), rows_);
  EXPECT_TRUE(start_reads({"run.resume=fresh"}));
  EXPECT_FALSE(start_reads());
}

TEST_F(RunRowsTest, AreReadAgainAfterLimitsOrTheTokenizerChanged) {
  start_reads();
  EXPECT_TRUE(start_reads({"data.max_tokens=31", "run.resume=fresh"}));
  const auto file = temp_.path() / "base/tokenizer.json";
  write_text(file, read_text(file) + "\n");
  EXPECT_TRUE(start_reads({"data.max_tokens=31", "run.resume=fresh"}));
  EXPECT_FALSE(start_reads({"data.max_tokens=31"}));
}

TEST_F(RunRowsTest, AreReadAgainIfTheIndexIsDamaged) {
  start_reads();
  const auto good = read_text(index());
  auto bad = good;
  bad[bad.size() / 2] ^= 1;
  write_text(index(), bad);
  EXPECT_TRUE(start_reads());
  EXPECT_EQ(read_text(index()), good);
}

TEST_F(RunRowsTest, OfAWorkerComeFromTheIndexOrFromAReportedPass) {
  const auto run = prepared();
  const auto lock = begin_attempt(run);
  const auto welcome
    = make_join_actor(make_basis(run, "test"), RunSecret{}).join_reply;
  const auto opened_by = [&](const actors::JoinReply& given) {
    auto worker = actors::make_worker_context(given);
    worker->threads.host = std::make_unique<actors::JobThread>("host");
    const bool read = worker->data.dataset().was_read();
    EXPECT_EQ(worker->data.dataset().size(), 1000U);
    EXPECT_EQ(worker->data.reading(), "") << "it does no more";
    return std::pair(read, worker->data.progress() > 0);
  };
  EXPECT_EQ(opened_by(welcome), std::pair(false, false));
  auto foreign = welcome;
  foreign.data_key = "of another run";
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(opened_by(foreign), std::pair(true, true));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("read 1000 rows of data.train again"));
}

} // namespace
