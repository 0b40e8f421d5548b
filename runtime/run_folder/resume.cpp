#include "runtime/run_folder/resume.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>

namespace troupe::runtime {

namespace {

std::string value_text(const std::string& value) {
  return value.empty() ? "not set" : value;
}

[[noreturn]] void refuse_changes(const ResumeInput& input) {
  std::string list;
  for (const auto& change : input.changes)
    list
      += fmt::format("{}{} was {}, is {}", list.empty() ? "" : ", ", change.key,
                     value_text(change.before), value_text(change.now));
  throw ConfigError(
    {.place = {input.folder, 0},
     .path = "",
     .expected = "the settings that this run was started with",
     .got = "other settings: " + list,
     .hint = fmt::format("run.resume=fresh (keeps the old run as {}.1), "
                         "run.resume=force or another run.name",
                         input.folder)});
}

ResumeDecision continue_or_restart(const ResumeInput& input) {
  if (input.newer_snapshot) // after the last step too: it is to be written
    return {.action = ResumeAction::continue_run,
            .first_step = *input.newer_snapshot,
            .sentence = fmt::format(
              "{}: continuing after step {} of {}, from memory", input.folder,
              *input.newer_snapshot, input.num_steps)};
  if (!input.newest_checkpoint)
    return {.action = ResumeAction::restart,
            .first_step = 0,
            .sentence = fmt::format(
              "{}: no checkpoint yet, starting again at step 0", input.folder)};
  const auto step = *input.newest_checkpoint;
  if (step >= input.num_steps)
    return {.action = ResumeAction::already_done,
            .first_step = step,
            .sentence = fmt::format(
              "{}: this run is finished ({} of {} steps); raise run.steps "
              "to continue, or use run.resume=fresh to start again",
              input.folder, step, input.num_steps)};
  return {.action = ResumeAction::continue_run,
          .first_step = step,
          .sentence = fmt::format("{}: continuing after step {} of {}",
                                  input.folder, step, input.num_steps)};
}

} // namespace

ResumeDecision decide_resume(const ResumeInput& input) {
  if (!input.folder_exists)
    return {};
  if (input.mode == "fresh")
    return {
      .action = ResumeAction::rename_old, .first_step = 0, .sentence = ""};
  if (input.mode == "never")
    throw ConfigError(
      {.place = {input.folder, 0},
       .path = "",
       .expected = "no run here, since run.resume is never",
       .got = "one",
       .hint = "another run.name, run.resume=auto or run.resume=fresh"});
  if (input.mode == "auto" && !input.changes.empty())
    refuse_changes(input);
  return continue_or_restart(input);
}

} // namespace troupe::runtime
