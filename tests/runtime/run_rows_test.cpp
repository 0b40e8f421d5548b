// One start of a run reads data.train, later ones and workers take its index,
// unless anything on which it depends has changed.
#include "actors/worker_context.hpp"
#include "plans/hardware.hpp"
#include "runtime/session_actors.hpp"
#include "runtime/session_plan.hpp"
#include "runtime/session_setup.hpp"

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
  SessionPlan prepared(const std::vector<std::string>& more = {}) const {
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
  /// A start of the run; whether it read every row.
  bool start_reads(const std::vector<std::string>& more = {}) const {
    const auto session = prepared(more);
    begin_attempt(session);
    return session.rows.data->was_read();
  }

  TempFolder temp_;
  std::string rows_;
};

TEST_F(RunRowsTest, AreReadByTheFirstStartOnly) {
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

TEST_F(RunRowsTest, AreReadAgainWhereTheDataHasChanged) {
  start_reads();
  rows_[rows_.size() - 6] = 'a'; // as many bytes
  write_text(data(), rows_);
  EXPECT_TRUE(start_reads({"run.resume=fresh"}));
  EXPECT_FALSE(start_reads());
}

TEST_F(RunRowsTest, AreReadAgainWhereLimitsOrTheTokenizerHaveChanged) {
  start_reads();
  EXPECT_TRUE(start_reads({"data.max_tokens=31", "run.resume=fresh"}));
  const auto file = temp_.path() / "base/tokenizer.json";
  write_text(file, read_text(file) + "\n");
  EXPECT_TRUE(start_reads({"data.max_tokens=31", "run.resume=fresh"}));
  EXPECT_FALSE(start_reads({"data.max_tokens=31"}));
}

TEST_F(RunRowsTest, AreReadAgainWhereTheIndexIsDamaged) {
  start_reads();
  const auto good = read_text(index());
  auto bad = good;
  bad[bad.size() / 2] ^= 1;
  write_text(index(), bad);
  EXPECT_TRUE(start_reads());
  EXPECT_EQ(read_text(index()), good);
}

TEST_F(RunRowsTest, OfAWorkerAreThoseOfTheIndexElseAPassThatIsProgress) {
  const auto session = prepared();
  const auto lock = begin_attempt(session);
  const auto welcome
    = make_lobby(make_basis(session, "test"), RunSecret{}).welcome;
  const auto opened_by = [&](const actors::Welcome& given) {
    auto worker = actors::make_worker_context(given);
    worker->host = std::make_unique<actors::DeviceThread>("host");
    const bool read = worker->dataset().was_read();
    EXPECT_EQ(worker->dataset().size(), 1000U);
    EXPECT_EQ(worker->reading(), "") << "it does no more";
    return std::pair(read, worker->host->progress().load() > 0);
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
