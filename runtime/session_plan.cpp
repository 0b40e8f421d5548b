#include "runtime/session_plan.hpp"

#include "actors/call_options.hpp"
#include "actors/open_files.hpp"
#include "config/error.hpp"
#include "models/dataset.hpp"
#include "net/open_files.hpp"
#include "plans/replicas.hpp"
#include "runtime/auto_plan.hpp"
#include "runtime/checkpoint_fit.hpp"
#include "runtime/cluster_choice.hpp"
#include "runtime/context_limits.hpp"
#include "runtime/device_memory.hpp"
#include "runtime/jsonl_file.hpp"
#include "runtime/known_calls.hpp"
#include "runtime/live/run_graph.hpp"
#include "runtime/run_folder.hpp"
#include "runtime/session_inputs.hpp"
#include "runtime/written_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

fs::path run_folder_of(const Settings& settings) {
  return fs::path(settings.run.dir) / settings.run.name;
}

std::uint32_t samples_per_step(const Settings& settings,
                               const plans::Workflow& workflow) {
  const auto rows = static_cast<std::uint32_t>(settings.data.batch_size);
  return workflow.samples_are_prompts
           ? rows * static_cast<std::uint32_t>(settings.rollout.n)
           : rows;
}

plans::PlanReport report_on(const SessionPlan& session,
                            const plans::ExecutionPlan& plan) {
  auto context = plans::make_check_context(
    session.settings, session.workflow, plan,
    device_memory_bytes(session.settings, plan.cluster.devices_per_node));
  context.shapes = session.shapes;
  return plans::check_plan(context);
}

/// As the plan verbs have it without --hardware: it depends on the memory of
/// this machine's devices, not on how fast they are.
plans::ExecutionPlan preset_for_run(const SessionPlan& session,
                                    const plans::Cluster& cluster) {
  const auto problem
    = run_problem(session.settings, session.workflow, session.shapes, cluster,
                  {.hardware = plans::load_hardware("laptop"), .table = {}});
  return plans::fitted_preset(session.settings.plan, problem);
}

/// Steps of the whole run; an epoch that ends within a step counts as whole.
std::uint32_t steps_of(const Settings& settings, std::uint64_t num_rows) {
  if (settings.run.steps > 0)
    return static_cast<std::uint32_t>(settings.run.steps);
  const auto batch = static_cast<std::uint64_t>(settings.data.batch_size);
  const auto rows = num_rows * static_cast<std::uint64_t>(settings.run.epochs);
  return static_cast<std::uint32_t>((rows + batch - 1) / batch);
}

/// Of settings, and of what the run reads beside them; older versions wrote
/// nothing of that.
std::vector<SettingChange> changes_since(const SessionPlan& session,
                                         const RunFolder& folder) {
  const auto config = folder.config_file();
  const auto inputs = folder.inputs_file();
  auto changes = changes_that_matter(
    parse_settings(read_file(config), config.string()), session.settings);
  if (fs::exists(inputs))
    std::ranges::move(
      changed_inputs(parse_inputs(read_file(inputs), inputs.string()),
                     session.inputs),
      std::back_inserter(changes));
  return changes;
}

ResumeDecision decide(const SessionPlan& session, const RunFolder& folder) {
  ResumeInput input;
  input.mode = session.settings.run.resume;
  input.folder = folder.root().string();
  input.folder_exists = folder.exists();
  input.num_steps = session.num_steps;
  if (input.folder_exists) {
    const auto steps = folder.checkpoints();
    if (!steps.empty())
      input.newest_checkpoint = steps.back();
    if (input.mode == "auto")
      input.changes = changes_since(session, folder);
  }
  return decide_resume(input);
}

/// Nobody may start a run in a folder where one is under way; found out before
/// anything is renamed.
void check_idle(const RunFolder& folder) {
  if (folder.exists())
    const RunLock free(folder);
}

void resolve_resume(SessionPlan& session) {
  const RunFolder folder(session.run_folder);
  folder.check_writable();
  check_idle(folder);
  session.resume = decide(session, folder);
  session.first_step = session.resume.first_step;
  session.resuming = session.resume.action == ResumeAction::continue_run;
  if (session.resuming) {
    session.checkpoint = folder.checkpoint(session.first_step);
    check_lags_fit(*session.checkpoint, session.workflow, session.plan);
  }
  session.attempt = session.resume.action == ResumeAction::rename_old
                      ? 1
                      : folder.next_attempt();
}

/// An optimizer step of fewer samples counts as much as one of more.
std::optional<std::string> uneven_mini_batches(const SessionPlan& session) {
  const std::uint32_t samples = session.samples_per_step;
  const auto parts = static_cast<std::uint32_t>(
    actors::mini_batches_of(session.settings, session.workflow));
  if (parts == 0 || samples % parts == 0)
    return std::nullopt;
  return fmt::format("algorithm.mini_batches: {} samples a step do not divide "
                     "into {}: mini-batches have {} or {}",
                     samples, parts, samples / parts, samples / parts + 1);
}

} // namespace

SessionPlan plan_session(const Settings& settings, MeasuredNow measured) {
  SessionPlan session;
  session.settings = settings;
  session.settings.cluster.device = device_kind(settings);
  session.run_folder = run_folder_of(settings);
  session.workflow = known_workflow(settings);
  session.shapes = read_shapes(settings, session.workflow);
  check_allowed_lengths(settings, session.workflow, session.shapes);
  session.samples_per_step = samples_per_step(settings, session.workflow);
  const RunFolder folder(session.run_folder);
  const bool reuses = settings.run.resume != "fresh";
  auto chosen = choose_plan(
    settings, session.workflow, reuses ? folder.plan_file() : fs::path{},
    [&](const auto& plan) { return report_on(session, plan).ok(); },
    [&](const plans::Cluster& cluster) {
      return preset_for_run(session, cluster);
    },
    [&](const plans::Cluster& cluster) {
      return search_for_run(session.settings, session.workflow, session.shapes,
                            cluster, measured);
    });
  session.plan = std::move(chosen.plan);
  session.plan_name = std::move(chosen.name);
  session.plan_why = std::move(chosen.why);
  session.settings = with_cluster(settings, session.plan.cluster);
  session.report = report_on(session, session.plan);
  return session;
}

SessionPlan prepare(const Settings& settings, MeasuredNow measured) {
  auto session = plan_session(settings, measured);
  const auto notes
    = check_models(session.settings, session.workflow, session.shapes);
  models::require_data_file(session.settings);
  session.inputs = inputs_of(session.settings, session.workflow);
  session.rows = open_rows(session.settings, session.workflow, session.shapes,
                           session.inputs, RunFolder(session.run_folder));
  session.num_rows = session.rows.data->size();
  session.bad_rows = session.rows.data->report().bad_rows;
  session.num_steps = steps_of(settings, session.num_rows);
  session.settings.run.steps = static_cast<int>(session.num_steps);
  session.settings.run.epochs = 0;
  plans::require_ok(session.report,
                    places_of_plan(session.settings, session.plan_name));
  actors::check_open_files(
    actors::open_files_needed(session.workflow, session.plan),
    session.plan.cluster.num_workers(), net::open_file_limit());
  check_evaluation(session.settings, session.workflow, session.plan,
                   session.shapes);
  check_reward(session.settings, session.workflow);
  check_replay(session.settings, session.workflow, session.num_steps,
               session.samples_per_step);
  if (!settings.run.max_time.empty())
    session.max_time = std::chrono::duration<double>(
      parse_duration_s(settings.run.max_time).value_or(0));
  resolve_resume(session);
  if (auto warning = uneven_mini_batches(session))
    session.report.warnings.push_back(std::move(*warning));
  if (session.first_step == 0) // else the checkpoint has them
    for (const auto& sentence : notes)
      session.report.warnings.push_back(sentence);
  return session;
}

DType saved_dtype(const SessionPlan& session, const std::string& role) {
  const auto& wanted = session.settings.models.at(role).save_dtype;
  if (wanted == "auto")
    return session.shapes.at(role).stored_dtype;
  return wanted == "bf16" ? DType::bf16 : DType::f32;
}

std::shared_ptr<RunLock> begin_attempt(const SessionPlan& session) {
  const RunFolder folder(session.run_folder);
  if (session.resume.action == ResumeAction::rename_old)
    folder.rename_old();
  folder.create();
  auto lock = std::make_shared<RunLock>(folder);
  const auto attempt = folder.attempt_folder(session.attempt);
  fs::create_directories(attempt);
  const auto config = print_settings(session.settings);
  const auto plan = plans::print(session.plan);
  replace_file(attempt / "config.yaml", config);
  replace_file(attempt / "plan.yaml", plan);
  replace_file(folder.plan_file(), plan);
  replace_file(folder.inputs_file(), print_inputs(session.inputs));
  keep_index(session.rows, folder);
  replace_file(folder.dataflow_file(),
               dataflow_json(session.workflow, session.plan));
  cut_back(folder.metrics_file(), session.first_step);
  cut_back(folder.samples_file(), session.first_step);
  std::error_code ignored;
  fs::remove(folder.stop_file(), ignored);
  // last: a folder with a config.yaml is a run
  replace_file(folder.config_file(), config);
  return lock;
}

} // namespace troupe::runtime
