#include "runtime/run_folder/session_inputs.hpp"

#include "actors/worker_base/sample_log.hpp"
#include "actors/worker_base/worker_context.hpp"
#include "config/base/error.hpp"
#include "config/model/hf_dropout.hpp"
#include "config/settings/data_files.hpp"
#include "models/data/dataset.hpp"
#include "models/data/plain_rows.hpp"
#include "models/data/ptx_data.hpp"
#include "models/data/sample_rows.hpp"
#include "models/hf/hf_folder.hpp"
#include "models/records/rollout_replay.hpp"
#include "models/rewards/rewarders.hpp"
#include "models/text/tokenizer.hpp"
#include "plans/workflow/evaluation.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/planner/role_shapes.hpp"
#include "runtime/run_folder/context_limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

/// Checks that tokenizers are equivalent: roles get the same token ids.
void check_same_tokenizer(const Settings& settings, const plans::Role& first,
                          const plans::Role& other) {
  const auto a = model_folder(settings, first) / "tokenizer.json";
  const auto b = model_folder(settings, other) / "tokenizer.json";
  std::error_code ignored;
  if (!fs::exists(b, ignored) || fs::equivalent(a, b, ignored)
      || read_file(a) == read_file(b))
    return;
  const auto ours = models::Tokenizer::load(a.parent_path());
  const auto theirs = models::Tokenizer::load(b.parent_path());
  for (std::int32_t id = 0;
       id < std::max(ours.vocab_size(), theirs.vocab_size()); ++id) {
    const auto* mine = ours.token_of(id);
    const auto* other_token = theirs.token_of(id);
    if (mine == nullptr && other_token == nullptr)
      continue;
    if (mine != nullptr && other_token != nullptr && *mine == *other_token)
      continue;
    throw ConfigError(
      {.place = place_of(settings, model_path_key(other)),
       .path = model_path_key(other),
       .expected = fmt::format("the tokenizer of {}", first.name),
       .got = fmt::format("another one (token {} is {} there, {} here)", id,
                          mine == nullptr ? "missing" : "'" + *mine + "'",
                          other_token == nullptr ? "missing"
                                                 : "'" + *other_token + "'"),
       .hint = "models of one family"});
  }
}

/// Checks, in the first row, the keys that no call writes: rows must have them.
void check_fields(const Settings& settings, const plans::Workflow& workflow,
                  const models::Dataset& dataset) {
  for (const auto& key : models::text_keys(workflow.dataset_keys))
    if (!dataset.field(0, key))
      throw ConfigError(
        {.place = place_of(settings, "data.fields"),
         .path = "data.fields",
         .expected = fmt::format("a column for key '{}', which workflow {} "
                                 "reads and no call writes",
                                 key, workflow.name),
         .got = fmt::format("rows of {} without it", train_text(settings.data)),
         .hint = fmt::format("data.fields.{}=COLUMN", key)});
}

} // namespace

fs::path tokenizer_folder(const Settings& settings,
                          const plans::Workflow& workflow) {
  TROUPE_CHECK(!workflow.roles.empty(), "every workflow has a role");
  return model_folder(settings, workflow.roles.front());
}

std::vector<std::string>
check_models(const Settings& settings, const plans::Workflow& workflow,
             const std::map<std::string, ModelShape>& shapes) {
  std::vector<std::string> notes;
  const auto folder = tokenizer_folder(settings, workflow);
  const auto tokenizer = models::Tokenizer::load(folder);
  const auto& first = workflow.roles.front();
  for (const auto& role : workflow.roles) {
    const auto& shape = shapes.at(role.name);
    bool missing_head = false;
    models::open_model_weights(model_folder(settings, role), shape,
                               &missing_head);
    if (missing_head)
      notes.push_back(
        fmt::format("{}: {} has no scalar head, so {} starts with a new zero "
                    "head",
                    model_path_key(role), model_folder(settings, role).string(),
                    role.name));
    if (const auto dropout = asked_dropout(model_folder(settings, role));
        dropout && role.trained)
      notes.push_back(fmt::format(
        "{}: {}/config.json asks for dropout ({}); {} is trained without",
        model_path_key(role), model_folder(settings, role).string(), *dropout,
        role.name));
    tokenizer.check_fits(shape, model_folder(settings, role).string());
    if (role.name != first.name)
      check_same_tokenizer(settings, first, role);
  }
  return notes;
}

void check_evaluation(const Settings& settings, const plans::Workflow& workflow,
                      const plans::ExecutionPlan& plan,
                      const RoleShapes& shapes) {
  const auto& file = settings.eval.data;
  if (file.empty())
    return;
  if (!models::is_data_file(file))
    throw ConfigError({.place = place_of(settings, "eval.data"),
                       .path = "eval.data",
                       .expected = "a file of JSON lines",
                       .got = "'" + file + "', which is no file",
                       .hint = ""});
  plans::place_evaluation(plan, plans::with_evaluation(workflow, settings));
  const auto rows = actors::open_evaluation(settings, workflow);
  models::warn_of_lost(rows);
  check_row_lengths(settings, workflow, shapes, rows);
}

std::optional<models::PtxTokens> check_ptx(const Settings& settings,
                                           const plans::Workflow& workflow,
                                           const RoleShapes& shapes) {
  if (settings.data.ptx.empty())
    return std::nullopt;
  const auto rows = models::open_ptx(
    settings, models::Tokenizer::load(tokenizer_folder(settings, workflow)));
  models::warn_of_lost(rows);
  check_whole_rows(shapes.at("actor"), "actor", rows);
  return models::PtxTokens(settings, rows);
}

void check_replay(const Settings& settings, const plans::Workflow& workflow,
                  std::uint32_t num_steps, std::uint32_t samples_per_step) {
  const auto& file = settings.run.replay;
  if (file.empty())
    return;
  const auto expect = [&](const std::string& expected, const std::string& got) {
    throw ConfigError(
      {.place = place_of(settings, "run.replay"),
       .path = "run.replay",
       .expected = expected,
       .got = got,
       .hint = "the samples.jsonl of a run with as many steps, the same data, "
               "data.batch_size and rollout.n"});
  };
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored))
    expect("a file of recorded samples", fmt::format("'{}'", file));
  const models::RolloutReplay replay(file, actors::recorded_keys(workflow));
  for (std::uint32_t step = 0; step < num_steps; ++step)
    if (const auto found = replay.num_samples(StepId{step});
        found != samples_per_step)
      expect(fmt::format("{} samples of step {}", samples_per_step, step + 1),
             fmt::format("{} in {}", found, file));
}

void check_reward(const Settings& settings, const plans::Workflow& workflow) {
  const auto asks
    = std::ranges::find(workflow.calls, "rewards", &plans::Call::fn);
  if (asks == workflow.calls.end())
    return;
  if (settings.reward.kind == "model")
    throw ConfigError(
      {.place = place_of(settings, "reward.kind"),
       .path = "reward.kind",
       .expected = fmt::format("rule, python, process or http for call {} of "
                               "workflow {}",
                               asks->name, workflow.name),
       .got = "model",
       .hint = "reward.kind=rule"});
  models::make_rewarder(settings, fs::path{});
}

void check_rows(const Settings& settings, const plans::Workflow& workflow,
                const RoleShapes& shapes, const models::Dataset& dataset) {
  models::warn_of_lost(dataset);
  check_fields(settings, workflow, dataset);
  check_row_lengths(settings, workflow, shapes, dataset);
}

} // namespace troupe::runtime
