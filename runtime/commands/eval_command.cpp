// eval: one evaluation of a model as training would make it, in a session that
// trains nothing.
#include "config/base/checkpoint_name.hpp"
#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "config/yaml/yaml_tree.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/base/stream_files.hpp"
#include "runtime/base/temporary_folder.hpp"
#include "runtime/base/text_table.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/commands/command_session.hpp"
#include "runtime/metrics/step_names.hpp"
#include "runtime/planner/user_plan.hpp"
#include "runtime/prepare/prepared_run.hpp"
#include "runtime/run_folder/run_folder.hpp"
#include "runtime/run_folder/session_inputs.hpp"
#include "runtime/session/session.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

namespace fs = std::filesystem;

struct EvalArguments : CommandOptions {
  ConfigArguments config;
  std::string model;
  std::string data;
  std::string out;
};

/// The model to evaluate: --model, else a run's newest checkpoint, else the one
/// that the settings would train.
struct EvalModel {
  std::string folder;
  std::uint32_t steps = 0;
};

/// Returns the steps of a run's checkpoints/step_N/ROLE, also as latest/ROLE; 0
/// for others. The noise of sampled responses is drawn for that step, as in
/// training.
std::uint32_t steps_of_model(const fs::path& folder) {
  std::error_code ignored;
  const auto found = fs::canonical(folder, ignored);
  return step_of_checkpoint(found.parent_path().filename().string())
    .value_or(StepId{})
    .value;
}

EvalModel eval_model(const EvalArguments& arguments, const Settings& settings,
                     const std::string& role) {
  if (!arguments.model.empty())
    return {arguments.model, steps_of_model(arguments.model)};
  const auto& word = arguments.config.arguments.front();
  if (fs::is_directory(word)) {
    const RunFolder folder{fs::path(word)};
    const auto steps = folder.checkpoints();
    if (!steps.empty())
      return {(folder.checkpoint(steps.back()) / role).string(), steps.back()};
  }
  return {settings.models.at(role).path, 0};
}

/// Resets the settings that belong to the training's run.
void leave_training(Settings& settings) {
  settings.run.steps = 1;
  settings.run.epochs = 0;
  settings.run.keep_best.clear();
  settings.run.replay.clear();
  settings.eval.at_start = settings.eval.at_end = true;
  settings.metrics = {};
  settings.metrics.console = settings.metrics.jsonl = false;
  settings.trace.enabled = false;
}

/// `data`: from --data; "" without it.
PreparedRun prepare_evaluation(const EvalArguments& arguments,
                               const std::string& data) {
  auto overrides = arguments.config.overrides();
  if (!data.empty())
    overrides.push_back("eval.data=" + print_yaml_scalar(data));
  auto settings = load_settings(arguments.config.files(), overrides);
  if (settings.eval.data.empty())
    throw ConfigError({.place = {"command line", 0},
                       .path = "--data",
                       .expected = "a file of JSON lines",
                       .got = "nothing, and no eval.data in the settings",
                       .hint = "--data FILE"});
  const auto role = plans::make_workflow(settings).roles.front().name;
  const auto model = eval_model(arguments, settings, role);
  settings.models[role].path = model.folder;
  PreparedRun run;
  auto& work = run.work;
  work = plan_work(settings);
  plans::require_ok(work.report, places_of_plan(work.settings, work.plan_name));
  check_models(work.settings, work.workflow, work.shapes);
  check_evaluation(work.settings, work.workflow, work.plan, work.shapes);
  leave_training(work.settings);
  run.steps.first = run.steps.end = model.steps;
  run.mode_options = EvaluateMode{};
  run.display.quiet = true;
  return run;
}

std::string eval_json(const PlannedWork& work, const StepMetrics& found) {
  Json metrics = Json::object();
  for (const auto& [name, value] : found.values)
    metrics[name] = value;
  const auto& role = work.workflow.roles.front().name;
  return Json{{"model", work.settings.models.at(role).path},
              {"data", work.settings.eval.data},
              {"step", found.step},
              {"metrics", metrics}}
    .dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

std::string eval_table(const StepMetrics& found) {
  TextTable table({"metric", "> value"});
  for (const auto& [name, value] : found.values)
    table.row({name, fmt::format("{:.4f}", value)});
  return table.print();
}

int evaluate(const EvalArguments& arguments) {
  if (!arguments.out.empty())
    check_out_file(arguments.out);
  std::optional<RowInput> rows;
  if (!arguments.data.empty())
    rows.emplace(arguments.data, "--data");
  auto run = rows ? rows->naming(
               [&] { return prepare_evaluation(arguments, rows->file()); })
                  : prepare_evaluation(arguments, "");
  const auto folder = scratch_folder("troupe-eval-");
  run.attempt.folder = folder.path();
  StepMetrics found;
  run.listeners.on_evaluation = [&](const actors::StepReport& report) {
    found = name_evaluation(run, report);
  };
  const auto code = command_exit_code(run_session(run));
  if (code != ExitCode::done)
    return static_cast<int>(code);
  if (!arguments.out.empty())
    write_result(arguments.out,
                 read_file(RunFolder(folder.path()).eval_file(run.steps.end)));
  if (rows)
    run.work.settings.eval.data = rows->name();
  print_out(arguments.json ? eval_json(run.work, found) : eval_table(found));
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_eval(CLI::App& app, CommandRun& chosen) {
  auto* command = app.add_subcommand(
    "eval", "Evaluate a model as training does every eval.every steps");
  auto arguments = std::make_shared<EvalArguments>();
  add_config_arguments(*command, arguments->config)->required();
  command->add_option("--model", arguments->model,
                      "Model folder; without it, a run's newest checkpoint, or "
                      "the settings' model");
  command->add_option("--data", arguments->data, "Rows in place of eval.data");
  command->add_option("--out", arguments->out,
                      "JSONL file to write: each answer with its reward");
  add_table_options(*command, *arguments);
  command->callback([arguments, &chosen] {
    chosen = [arguments] { return evaluate(*arguments); };
  });
}

} // namespace troupe::runtime
