#include "runtime/commands/command_session.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/worker_base/sample_log.hpp"
#include "config/model/model_shape.hpp"
#include "models/data/dataset.hpp"
#include "plans/check/planned_memory.hpp"
#include "runtime/base/stream_files.hpp"
#include "runtime/planning/device_memory.hpp"
#include "runtime/planning/resolve_cluster.hpp"
#include "runtime/session/session.hpp"

#include <fmt/format.h>

#include <iostream>
#include <system_error>
#include <utility>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

/// Samples per step: bounds the memory of a command. The same for any degrees,
/// so that the noise, and with it the responses, are the same too (I2).
constexpr std::uint32_t command_batch_samples = 512;

/// Returns "folder" for "folder/": its parent is the folder that contains it.
fs::path without_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

TemporaryFolder make_folder_beside(const fs::path& out,
                                   const std::string& command) {
  if (is_stream(out))
    return scratch_folder("troupe-" + command + "-");
  try {
    return {fs::absolute(out).lexically_normal().parent_path(),
            ".troupe-" + command + "-"};
  } catch (const std::system_error& error) {
    throw ConfigError(
      {.place = {"command line", 0},
       .path = "--out",
       .expected = "a name in a writable folder",
       .got = fmt::format("'{}' ({})", out.string(), error.code().message()),
       .hint = ""});
  }
}

plans::ExecutionPlan command_plan(const plans::Workflow& workflow,
                                  const ModelOptions& model) {
  plans::ExecutionPlan plan;
  plan.cluster.devices_per_node = num_devices(model);
  plans::Placement placement{.strategy = strategy_of(model)};
  for (std::uint32_t rank = 0; rank < num_devices(model); ++rank)
    placement.devices.emplace_back(rank);
  for (const auto& call : workflow.calls)
    plan.calls[call.name]
      = call.kind == plans::CallKind::function ? plans::Placement{} : placement;
  return plan;
}

} // namespace

ExitCode command_exit_code(ExitCode code) {
  if (code == ExitCode::stopped || code == ExitCode::interrupted)
    std::cerr << "error: stopped by a signal; nothing was written\n";
  return code == ExitCode::stopped ? ExitCode::failed : code;
}

CommandSession::CommandSession(const std::string& command,
                               const ModelOptions& model,
                               const ModelShape& shape, const fs::path& out)
  : model_(model),
    shape_(shape),
    out_(without_slash(out)),
    folder_(make_folder_beside(out_, command)),
    role_(shape.scalar_head ? "reward" : "actor") {
  settings_.workflow = command;
  settings_.run.dir = folder_.path().parent_path().string();
  settings_.run.name = folder_.path().filename().string();
  settings_.run.keep = 1;
  settings_.models[role_].path = model.model;
  settings_.cluster.launcher = "local";
  settings_.data.shuffle = false;
  settings_.metrics.console = false;
  settings_.metrics.jsonl = false;
  settings_.trace.enabled = false;
}

CommandSession::Outcome
CommandSession::run_rows(std::shared_ptr<const models::Dataset> data) {
  const auto num_rows = data->size();
  const auto n = static_cast<std::uint32_t>(settings_.rollout.n);
  const auto rows = std::max(1U, command_batch_samples / n);
  settings_.data.batch_size = static_cast<int>(rows);
  // the folder is new and used by this session only, so is its index
  return run((num_rows + rows - 1) / rows,
             {.data = std::move(data), .key = "of this session"},
             CommandMode{});
}

CommandSession::Outcome
CommandSession::run_convert(const models::HfStore& store) {
  return run(0, {}, ConvertMode{.store = store});
}

PlannedWork CommandSession::plan_command(std::uint32_t num_steps) const {
  PlannedWork work;
  work.settings = settings_;
  work.settings.run.steps = static_cast<int>(num_steps);
  work.workflow = plans::make_workflow(settings_);
  work.shapes[role_] = shape_;
  work.plan = command_plan(work.workflow, model_);
  work.plan_name = "of the command line";
  work.settings = with_cluster(work.settings, work.plan.cluster);
  auto context = plans::make_check_context(
    work.settings, work.workflow, work.plan,
    device_memory_bytes(work.settings, work.plan.cluster.devices_per_node));
  context.shapes = work.shapes;
  auto without_memory = context; // limits are for training: commands are not
                                 // refused
  without_memory.device_memory_bytes.reset();
  work.report = plans::check_plan(without_memory);
  if (work.report.ok())
    work.report.rooms = plans::planned_memory(
                          context, plans::replicas_of(work.workflow, work.plan))
                          .rooms;
  for (auto& mistake : work.report.errors)
    mistake.path = "--strategy"; // the only part of this plan that the user set
  plans::require_ok(work.report,
                    [](const std::string&) { return "command line: "; });
  return work;
}

CommandSession::Outcome CommandSession::run(std::uint32_t num_steps,
                                            RunRows rows,
                                            ModeOptions mode_options) {
  PreparedRun prepared;
  prepared.work = plan_command(num_steps);
  prepared.attempt.folder = folder_.path();
  prepared.data.rows = std::move(rows);
  prepared.steps.end = num_steps;
  prepared.display.quiet = true;
  prepared.mode_options = std::move(mode_options);
  Outcome outcome;
  prepared.listeners.on_step = [&](const actors::StepReport& report) {
    outcome.made_tokens += report.tokens.all - report.tokens.prompts;
    outcome.seconds += report.duration.count();
  };
  outcome.code = command_exit_code(run_session(prepared));
  return outcome;
}

void CommandSession::keep_rows() {
  move_result(folder_.path() / actors::command_rows_file, out_);
}

void CommandSession::keep_model() {
  const auto checkpoint = actors::latest_checkpoint(folder_.path());
  TROUPE_CHECK(checkpoint, "a session that converts makes a checkpoint");
  move_result(*checkpoint / role_, out_);
}

} // namespace troupe::runtime
