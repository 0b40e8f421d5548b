#include "runtime/verb_session.hpp"

#include "actors/checkpoint_files.hpp"
#include "actors/recording.hpp"
#include "config/model_shape.hpp"
#include "models/dataset.hpp"
#include "plans/planned_memory.hpp"
#include "runtime/cluster_choice.hpp"
#include "runtime/device_memory.hpp"
#include "runtime/session.hpp"
#include "runtime/stream_files.hpp"

#include <fmt/format.h>

#include <iostream>
#include <system_error>
#include <utility>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

/// Samples of a step: bounds the memory of a verb. The same for any degrees, so
/// that the noise, and with it the answers, are the same too (I2).
constexpr std::uint32_t verb_batch_samples = 512;

/// "folder/" as "folder", whose parent is what it lies in.
fs::path without_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

TemporaryFolder make_folder_beside(const fs::path& out,
                                   const std::string& verb) {
  if (is_stream(out))
    return scratch_folder("troupe-" + verb + "-");
  try {
    return {fs::absolute(out).lexically_normal().parent_path(),
            ".troupe-" + verb + "-"};
  } catch (const std::system_error& error) {
    throw ConfigError(
      {.place = {"command line", 0},
       .path = "--out",
       .expected = "a name in a writable folder",
       .got = fmt::format("'{}' ({})", out.string(), error.code().message()),
       .hint = ""});
  }
}

plans::ExecutionPlan verb_plan(const plans::Workflow& workflow,
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

ExitCode verb_exit_code(ExitCode code) {
  if (code == ExitCode::stopped || code == ExitCode::interrupted)
    std::cerr << "error: stopped by a signal; nothing was written\n";
  return code == ExitCode::stopped ? ExitCode::failed : code;
}

VerbSession::VerbSession(const std::string& verb, const ModelOptions& model,
                         const ModelShape& shape, const fs::path& out)
  : model_(model),
    shape_(shape),
    out_(without_slash(out)),
    folder_(make_folder_beside(out_, verb)),
    role_(shape.scalar_head ? "reward" : "actor") {
  settings_.workflow = verb;
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

VerbSession::Outcome
VerbSession::run_rows(std::shared_ptr<const models::Dataset> data) {
  const auto num_rows = data->size();
  const auto n = static_cast<std::uint32_t>(settings_.rollout.n);
  const auto rows = std::max(1U, verb_batch_samples / n);
  settings_.data.batch_size = static_cast<int>(rows);
  // the folder is new and of this session alone, so is its index
  return run((num_rows + rows - 1) / rows,
             {.data = std::move(data), .key = "of this session"}, std::nullopt);
}

VerbSession::Outcome VerbSession::run_convert(const models::HfStore& store) {
  return run(0, {}, store);
}

VerbSession::Outcome
VerbSession::run(std::uint32_t num_steps, RunRows rows,
                 const std::optional<models::HfStore>& store) {
  SessionPlan session;
  session.settings = settings_;
  session.settings.run.steps = static_cast<int>(num_steps);
  session.workflow = plans::make_workflow(settings_);
  session.shapes[role_] = shape_;
  session.plan = verb_plan(session.workflow, model_);
  session.plan_name = "of the command line";
  session.settings = with_cluster(session.settings, session.plan.cluster);
  auto context = plans::make_check_context(
    session.settings, session.workflow, session.plan,
    device_memory_bytes(session.settings,
                        session.plan.cluster.devices_per_node));
  context.shapes = session.shapes;
  auto without_memory = context; // bounds are for training: nobody is refused
  without_memory.device_memory_bytes.reset();
  session.report = plans::check_plan(without_memory);
  if (session.report.ok())
    session.report.rooms
      = plans::planned_memory(
          context, plans::replicas_of(session.workflow, session.plan))
          .rooms;
  for (auto& mistake : session.report.errors)
    mistake.path = "--strategy"; // all that a user says of this plan
  plans::require_ok(session.report,
                    [](const std::string&) { return "command line: "; });
  session.run_folder = folder_.path();
  session.rows = std::move(rows);
  session.num_steps = num_steps;
  session.quiet = true;
  session.convert_to = store;
  session.stops_at_once = true;
  Outcome outcome;
  session.on_step = [&](const actors::StepReport& report) {
    outcome.made_tokens += report.tokens - report.prompt_tokens;
    outcome.seconds += report.duration.count();
  };
  outcome.code = verb_exit_code(run_session(session));
  return outcome;
}

void VerbSession::keep_rows() {
  move_result(folder_.path() / actors::verb_rows_file, out_);
}

void VerbSession::keep_model() {
  const auto checkpoint = actors::latest_checkpoint(folder_.path());
  TROUPE_CHECK(checkpoint, "a session that converts makes a checkpoint");
  move_result(*checkpoint / role_, out_);
}

} // namespace troupe::runtime
