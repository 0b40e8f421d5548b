// eval: one evaluation of a model as training would make it, in a session that
// trains nothing.
#include "config/checkpoint_name.hpp"
#include "config/error.hpp"
#include "config/settings.hpp"
#include "config/yaml_tree.hpp"
#include "runtime/jsonl_file.hpp"
#include "runtime/run_folder.hpp"
#include "runtime/session.hpp"
#include "runtime/session_inputs.hpp"
#include "runtime/session_plan.hpp"
#include "runtime/step_names.hpp"
#include "runtime/stream_files.hpp"
#include "runtime/temporary_folder.hpp"
#include "runtime/text_table.hpp"
#include "runtime/verb_session.hpp"
#include "runtime/verbs/verb.hpp"
#include "runtime/written_plan.hpp"

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

struct EvalWords : VerbOptions {
  ConfigWords config;
  std::string model;
  std::string data;
  std::string out;
};

/// What is evaluated: --model, else a run's newest checkpoint, else what the
/// settings would train.
struct EvalModel {
  std::string folder;
  std::uint32_t steps = 0;
};

/// Of a run's checkpoints/step_N/ROLE, also as latest/ROLE; 0 of others. The
/// noise of sampled answers is drawn for it, as training draws it.
std::uint32_t steps_of_model(const fs::path& folder) {
  std::error_code ignored;
  const auto found = fs::canonical(folder, ignored);
  return step_of_checkpoint(found.parent_path().filename().string())
    .value_or(StepId{})
    .value;
}

EvalModel eval_model(const EvalWords& words, const Settings& settings,
                     const std::string& role) {
  if (!words.model.empty())
    return {words.model, steps_of_model(words.model)};
  const auto& word = words.config.words.front();
  if (fs::is_directory(word)) {
    const RunFolder folder{fs::path(word)};
    const auto steps = folder.checkpoints();
    if (!steps.empty())
      return {(folder.checkpoint(steps.back()) / role).string(), steps.back()};
  }
  return {settings.models.at(role).path, 0};
}

/// Nothing that belongs to the training's run.
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

/// `data`: of --data; "" without it.
SessionPlan eval_session(const EvalWords& words, const std::string& data) {
  auto overrides = words.config.overrides();
  if (!data.empty())
    overrides.push_back("eval.data=" + print_yaml_scalar(data));
  auto settings = load_settings(words.config.files(), overrides);
  if (settings.eval.data.empty())
    throw ConfigError({.place = {"command line", 0},
                       .path = "--data",
                       .expected = "a file of JSON lines",
                       .got = "nothing, and no eval.data in the settings",
                       .hint = "--data FILE"});
  const auto role = plans::make_workflow(settings).roles.front().name;
  const auto model = eval_model(words, settings, role);
  settings.models[role].path = model.folder;
  auto session = plan_session(settings);
  plans::require_ok(session.report,
                    places_of_plan(session.settings, session.plan_name));
  check_models(session.settings, session.workflow, session.shapes);
  check_evaluation(session.settings, session.workflow, session.plan,
                   session.shapes);
  leave_training(session.settings);
  session.first_step = session.num_steps = model.steps;
  session.only_evaluates = true;
  session.stops_at_once = true;
  session.quiet = true;
  return session;
}

std::string eval_json(const SessionPlan& session, const StepMetrics& found) {
  Json metrics = Json::object();
  for (const auto& [name, value] : found.values)
    metrics[name] = value;
  const auto& role = session.workflow.roles.front().name;
  return Json{{"model", session.settings.models.at(role).path},
              {"data", session.settings.eval.data},
              {"step", found.step},
              {"metrics", metrics}}
    .dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string eval_table(const StepMetrics& found) {
  TextTable table({"metric", "> value"});
  for (const auto& [name, value] : found.values)
    table.row({name, fmt::format("{:.4f}", value)});
  return table.print();
}

int evaluate(const EvalWords& words) {
  if (!words.out.empty())
    check_out_file(words.out);
  std::optional<RowInput> rows;
  if (!words.data.empty())
    rows.emplace(words.data, "--data");
  auto session
    = rows ? rows->naming([&] { return eval_session(words, rows->file()); })
           : eval_session(words, "");
  const auto folder = scratch_folder("troupe-eval-");
  session.run_folder = folder.path();
  StepMetrics found;
  session.on_evaluation = [&](const actors::StepReport& report) {
    found = name_evaluation(session, report);
  };
  const auto code = verb_exit_code(run_session(session));
  if (code != ExitCode::done)
    return static_cast<int>(code);
  if (!words.out.empty())
    write_result(
      words.out,
      read_file(RunFolder(folder.path()).eval_file(session.num_steps)));
  if (rows)
    session.settings.eval.data = rows->name();
  print_out(words.json ? eval_json(session, found) : eval_table(found));
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_eval(CLI::App& app, VerbRun& chosen) {
  auto* verb = app.add_subcommand(
    "eval", "Evaluate a model as training does every eval.every steps");
  auto words = std::make_shared<EvalWords>();
  add_config_words(*verb, words->config)->required();
  verb->add_option("--model", words->model,
                   "Model folder; without it, a run's newest checkpoint, or "
                   "the settings' model");
  verb->add_option("--data", words->data, "Rows in place of eval.data");
  verb->add_option("--out", words->out,
                   "JSONL file to write: each answer with its reward");
  add_table_options(*verb, *words);
  verb->callback(
    [words, &chosen] { chosen = [words] { return evaluate(*words); }; });
}

} // namespace troupe::runtime
