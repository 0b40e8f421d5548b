// I8, "run.resume": how the run folder and the command decide together.
#include "config/base/error.hpp"
#include "runtime/run_folder/resume.hpp"

#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::HasSubstr;

namespace {

ResumeInput resume_input(std::string mode) {
  return {.mode = std::move(mode),
          .folder = "runs/tiny",
          .folder_exists = true,
          .newest_checkpoint = 20,
          .num_steps = 60,
          .changes = {}};
}

std::string refusal(const ResumeInput& input) {
  try {
    decide_resume(input);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "not refused";
}

} // namespace

TEST(Resume, ANewFolderStartsInEveryMode) {
  for (const char* mode : {"auto", "force", "fresh", "never"}) {
    auto input = resume_input(mode);
    input.folder_exists = false;
    EXPECT_EQ(decide_resume(input).action, ResumeAction::start) << mode;
  }
}

TEST(Resume, AutoContinuesAtTheNewestCheckpoint) {
  const auto decision = decide_resume(resume_input("auto"));
  EXPECT_EQ(decision.action, ResumeAction::continue_run);
  EXPECT_EQ(decision.first_step, 20u);
}

TEST(Resume, AutoRefusesOtherSettingsAndShowsThem) {
  auto input = resume_input("auto");
  input.changes = {{"models.actor.optimizer.lr", "1e-05", "1e-04"}};
  const auto text = refusal(input);
  EXPECT_THAT(text, HasSubstr("models.actor.optimizer.lr was 1e-05, is 1e-04"));
  EXPECT_THAT(text, HasSubstr("run.resume=fresh"));
  input.mode = "force";
  EXPECT_EQ(decide_resume(input).action, ResumeAction::continue_run);
}

TEST(Resume, WithoutACheckpointTheRunRestarts) {
  auto input = resume_input("auto");
  input.newest_checkpoint.reset();
  EXPECT_EQ(decide_resume(input).action, ResumeAction::restart);
}

TEST(Resume, AFinishedRunIsReported) {
  auto input = resume_input("auto");
  input.newest_checkpoint = 60;
  const auto decision = decide_resume(input);
  EXPECT_EQ(decision.action, ResumeAction::already_done);
  EXPECT_THAT(decision.sentence, HasSubstr("finished (60 of 60 steps)"));
  input.num_steps = 80;
  EXPECT_EQ(decide_resume(input).action, ResumeAction::continue_run);
}

TEST(Resume, FreshRenamesAndNeverRefuses) {
  EXPECT_EQ(decide_resume(resume_input("fresh")).action,
            ResumeAction::rename_old);
  EXPECT_THAT(refusal(resume_input("never")), HasSubstr("never"));
}
