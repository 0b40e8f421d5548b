#include "config/base/error.hpp"
#include "runtime/run_folder/run_list.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

namespace fs = std::filesystem;
using namespace troupe;
using namespace troupe::runtime;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using troupe::test::TempFolder;
using troupe::test::write_text;

namespace {

class RunList : public ::testing::Test {
protected:
  RunList() : before_(fs::current_path()) {
    fs::current_path(folder_.path());
    add("old", "2026-01-01T00:00:00Z", "done");
    add("new", "2026-02-01T00:00:00Z", "failed");
    add("dead", "2026-01-15T00:00:00Z", "running");
    fs::create_directories("runs/no_run");
  }
  ~RunList() override {
    fs::current_path(before_);
  }
  static void add(const std::string& name, const std::string& updated,
                  const std::string& state) {
    RunStatus status{.state = state, .step = 3, .steps = 9};
    status.host = host_name();
    status.updated = updated;
    write_text(fs::path("runs") / name / "status.json", status_json(status));
  }
  TempFolder folder_;
  fs::path before_;
};

TEST_F(RunList, NamesEachRunNewestFirst) {
  const auto runs = list_runs("runs");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].folder.name(), "new");
  EXPECT_EQ(runs[1].folder.name(), "dead");
  EXPECT_EQ(runs[1].status.state, "lost") << "its master is gone";
  EXPECT_EQ(runs[2].folder.name(), "old");
  EXPECT_THAT(runs_text(runs), StartsWith("run   state   step"));
  EXPECT_THAT(runs_text(runs), HasSubstr("new   failed   3/9"));
  EXPECT_THAT(runs_json(runs), HasSubstr("\"name\": \"dead\""));
  EXPECT_TRUE(list_runs("nowhere").empty());
}

TEST_F(RunList, ARunIsFoundByNameOrFolder) {
  EXPECT_EQ(find_run("old").root(), "runs/old");
  EXPECT_EQ(find_run("runs/old").root(), "runs/old");
}

TEST_F(RunList, AnUnknownRunGetsTheNearestName) {
  const auto error = [](const std::string& word) -> std::string {
    try {
      find_run(word);
    } catch (const ConfigError& caught) {
      return caught.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("oldd"), "oldd: expected a run's name or folder, got no "
                           "status.json in it or in runs/oldd; try 'old'");
  EXPECT_THAT(error("something"), HasSubstr("try `troupe status`"));
}

} // namespace
