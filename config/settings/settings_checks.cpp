// Checks of settings as a whole (declared in settings_schema.hpp).
#include "config/settings/agent_checks.hpp"
#include "config/settings/data_files.hpp"
#include "config/settings/engine_checks.hpp"
#include "config/settings/loss_checks.hpp"
#include "config/settings/mistakes.hpp"
#include "config/settings/reward_rule.hpp"
#include "config/settings/settings_schema.hpp"
#include "config/settings/workflow_file.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {

namespace {

/// Returns the hint that a workflow in a file may declare that it reads the
/// setting.
std::string reading_hint(const Settings& settings, const std::string& path) {
  if (!is_workflow_file(settings.workflow))
    return "";
  for (const auto& field : settings_fields())
    if (field.path.starts_with(path) && !field.groups.empty()
        && !word_of(field.groups.front()).empty())
      return fmt::format(", or `{}` in the settings of {}",
                         word_of(field.groups.front()), settings.workflow);
  return "";
}

ConfigError ignored_setting(const Settings& settings, const std::string& path,
                            const std::string& expected, const std::string& got,
                            const std::string& hint = "") {
  return ConfigError(
    {.place = place_of(settings, path),
     .path = path,
     .expected = expected,
     .got = got,
     .hint = fmt::format("removing it ({}=null){}", path, hint)});
}

bool equals_default(const Field& field, const Settings& settings,
                    const std::string& role) {
  return value_text(field, settings, role) == default_text(field);
}

/// Refuses settings of a section that the workflow does not use.
void check_section(const Settings& settings, const std::string& path) {
  if (!section_applies(path, settings.workflow))
    throw ignored_setting(
      settings, path,
      fmt::format("only settings that workflow {} uses", settings.workflow),
      "one that it would ignore", reading_hint(settings, path));
}

/// Refuses an explicit value that nothing would read. Inside a section that the
/// workflow uses, writing out a default is harmless and allowed.
void check_not_ignored(const Field& field, const Settings& settings,
                       const std::string& path, const std::string& role) {
  const auto& workflow = settings.workflow;
  if (!role.empty() && !uses_role(settings, role))
    throw ignored_setting(settings, path, "only models that the run uses",
                          fmt::format("'{}', which it would ignore", role));
  if (equals_default(field, settings, role))
    return;
  if (!field_applies(field, workflow))
    throw ignored_setting(
      settings, path,
      fmt::format("only settings that workflow {} uses", workflow),
      "one that it would ignore", reading_hint(settings, path));
  if (!is_for_role(field, workflow, role))
    throw ignored_setting(
      settings, path,
      fmt::format("it only for roles that workflow {} {}", workflow,
                  field.is_trained_only ? "trains" : "does not train"),
      fmt::format("it for '{}'", role));
  if (!needs_hold(field, settings)) {
    const Field* other = find_field(field.needs_key).first;
    const auto wanted = field.needs_value.empty()
                          ? "set"
                          : "to be " + join_or(field.needs_value);
    throw ignored_setting(settings, path,
                          fmt::format("{} {}", field.needs_key, wanted),
                          fmt::format("{}, which ignores this setting",
                                      value_text(*other, settings, "")));
  }
}

/// Returns a hint that names the other kinds of reward: a reward model is only
/// one of them.
std::string model_hint(const RoleTraits& role, const std::string& path) {
  std::string hint = path + "=FOLDER";
  if (role.needs_key != "reward.kind")
    return hint;
  const auto& kind = *find_field(role.needs_key).first;
  std::vector<std::string> others;
  for (const auto& choice : choices_of(kind))
    if (!holds(role.needs_value, choice))
      others.push_back(choice);
  return fmt::format("{}, or rewards without a model (reward.kind: {}), as "
                     "reward.kind=rule reward.rule=gsm8k",
                     hint, join_or(others));
}

void check_required_models(Mistakes& mistakes, const Settings& settings,
                           const Place& whole) {
  const auto has_path = [&](const std::string& role) {
    const auto at = settings.models.find(role);
    return at != settings.models.end() && !at->second.path.empty();
  };
  for (const auto& role : find_workflow_traits(settings.workflow)->roles) {
    if (!uses_role(settings, role.name) || has_path(role.name))
      continue;
    // if another role's folder would serve, that setting is missing
    if (const auto& other = role.default_path_of;
        !other.empty() && uses_role(settings, other) && !has_path(other))
      continue;
    const auto path = fmt::format("models.{}.path", role.name);
    const auto place = place_of(settings, path);
    mistakes.add(ConfigError({.place = place.file.empty() ? whole : place,
                              .path = path,
                              .expected = "a folder in Hugging Face format",
                              .got = "nothing",
                              .hint = model_hint(role, path)}));
  }
}

/// Checks the required settings of a user-defined program's sections.
void check_required_user(const Settings& settings, const Place& whole) {
  for (const auto& field : settings_fields())
    if (!field.user_section.empty() && field.is_required
        && field_applies(field, settings.workflow)
        && !was_set(settings, field.path))
      throw ConfigError({.place = whole,
                         .path = field.path,
                         .expected = expected_text(field),
                         .got = "nothing",
                         .hint = "`explain " + field.path + "`"});
}

/// Returns the place of the first of `keys` that was set, else `whole`.
Place first_place(const Settings& settings,
                  const std::vector<std::string>& keys, const Place& whole) {
  for (const auto& key : keys)
    if (was_set(settings, key))
      return place_of(settings, key);
  return whole;
}

void check_length(const Settings& settings, const Place& whole) {
  const auto& run = settings.run;
  const bool by_epochs
    = workflow_reads(settings.workflow, SettingsGroup::sequences);
  if (run.steps == 0 && run.epochs == 0)
    throw ConfigError({.place = first_place(settings, {"run.steps"}, whole),
                       .path = "run.steps",
                       .expected = by_epochs ? "run.steps or run.epochs >= 1"
                                             : "a whole number >= 1",
                       .got = was_set(settings, "run.steps") ? "0" : "nothing",
                       .hint = "run.steps=100"});
  if (run.steps > 0 && run.epochs > 0)
    throw ConfigError({.place = place_of(settings, "run.epochs"),
                       .path = "run.epochs",
                       .expected = "run.steps or run.epochs",
                       .got = "both",
                       .hint = "run.steps=null"});
}

/// Checks group sizes: advantages of group and rloo compare the responses to a
/// prompt, and with a single response would be its whole reward. Workflows with
/// a critic support only gae.
void check_group(const Settings& settings, const Place& whole) {
  const auto& advantage = settings.algorithm.advantage;
  const bool compares = advantage == "group" || advantage == "rloo";
  if (!compares || settings.rollout.n >= 2
      || !workflow_reads(settings.workflow, SettingsGroup::advantages)
      || workflow_reads(settings.workflow, SettingsGroup::critic))
    return;
  throw ConfigError(
    {.place = first_place(
       settings, {"rollout.n", "algorithm.advantage", "workflow"}, whole),
     .path = "rollout.n",
     .expected = fmt::format("a whole number >= 2 (algorithm.advantage {} "
                             "compares the answers to a prompt)",
                             advantage),
     .got = fmt::format("{}{}", settings.rollout.n,
                        was_set(settings, "rollout.n") ? "" : ", the default"),
     .hint = "rollout.n=8"});
}

void check_sizes(const Settings& settings, const Place& whole) {
  const auto& rollout = settings.rollout;
  if (rollout.min_new_tokens > rollout.max_new_tokens)
    throw ConfigError(
      {.place = first_place(
         settings, {"rollout.min_new_tokens", "rollout.max_new_tokens"}, whole),
       .path = "rollout.min_new_tokens",
       .expected = fmt::format("a whole number <= rollout.max_new_tokens ({})",
                               rollout.max_new_tokens),
       .got = fmt::format("'{}'", rollout.min_new_tokens),
       .hint = std::to_string(rollout.max_new_tokens)});
  if (std::ranges::find(rollout.stop, "") != rollout.stop.end())
    throw ConfigError({.place = place_of(settings, "rollout.stop"),
                       .path = "rollout.stop",
                       .expected = "texts of at least one character",
                       .got = "an empty one",
                       .hint = ""});
  const auto samples = std::int64_t{settings.data.batch_size} * rollout.n;
  constexpr std::int64_t most_samples = INT32_MAX; // ids have 32 bits
  const auto generated = samples * settings.algorithm.group.rounds;
  if (generated > most_samples)
    throw ConfigError(
      {.place = first_place(settings, {"rollout.n", "data.batch_size"}, whole),
       .path = "rollout.n",
       .expected = fmt::format("at most {} samples a step", most_samples),
       .got = fmt::format("{} rows of {}", settings.data.batch_size, rollout.n),
       .hint = std::to_string(
         std::max<std::int64_t>(1, most_samples / settings.data.batch_size))});
  if (workflow_reads(settings.workflow, SettingsGroup::updates)
      && settings.algorithm.mini_batches > samples)
    throw ConfigError(
      {.place = first_place(
         settings, {"algorithm.mini_batches", "data.batch_size"}, whole),
       .path = "algorithm.mini_batches",
       .expected = fmt::format("at most the samples of a step ({})", samples),
       .got = fmt::format("'{}'", settings.algorithm.mini_batches),
       .hint = std::to_string(samples)});
}

void check_data(const Settings& settings, const Place& whole) {
  if (train_files(settings.data).empty())
    throw ConfigError({.place = first_place(settings, {"data.train"}, whole),
                       .path = "data.train",
                       .expected = "a JSONL file",
                       .got = "nothing",
                       .hint = "data.train=FILE"});
}

/// Checks that rules exist; with weighted rewards each name is a rule.
void check_reward(const Settings& settings) {
  const auto& reward = settings.reward;
  if (reward.kind != "rule")
    return;
  if (reward.weights.empty())
    parse_reward_rule(reward.rule, place_of(settings, "reward.rule"),
                      "reward.rule");
  else if (reward.rule != RewardSettings{}.rule)
    throw ignored_setting(settings, "reward.rule",
                          "reward.rule or reward.weights",
                          "both; the rules' names are in reward.weights");
  for (const auto& [name, weight] : reward.weights)
    parse_reward_rule(name, place_of(settings, "reward.weights"),
                      "reward.weights");
}

/// Calls `work` for each field that the user set, in table order.
template <class Work>
void for_each_set(const Settings& settings, Work&& work) {
  for (const auto& field : settings_fields()) {
    const bool by_role = path_with_role(field.path, "x") != field.path;
    const auto roles
      = by_role ? roles_of(settings.workflow) : std::vector<std::string>{""};
    for (const auto& role : roles) {
      const auto path = path_with_role(field.path, role);
      if (was_set(settings, path))
        work(field, path, role);
    }
  }
}

} // namespace

void check_settings(const Settings& settings, const Place& whole) {
  if (is_command_workflow(settings.workflow))
    return; // made by the command, which has checked the user's input
  // mistakes that prevent a run precede what they make useless (reward.kind
  // before the reward model), and their consequences are not reported
  Mistakes mistakes;
  for_each_set(settings,
               [&](const Field&, const std::string& path, const std::string&) {
                 mistakes.collect([&] { check_section(settings, path); });
               });
  mistakes.throw_any();
  for_each_set(settings, [&](const Field& field, const std::string& path,
                             const std::string& role) {
    mistakes.collect([&] { check_not_ignored(field, settings, path, role); });
  });
  mistakes.throw_any();
  mistakes.collect([&] { check_length(settings, whole); });
  mistakes.collect([&] { check_required_user(settings, whole); });
  check_required_models(mistakes, settings, whole);
  mistakes.collect([&] { check_data(settings, whole); });
  mistakes.collect([&] { check_sizes(settings, whole); });
  mistakes.collect([&] { check_group(settings, whole); });
  mistakes.collect([&] { check_reward(settings); });
  mistakes.collect([&] { check_losses(settings, whole); });
  mistakes.collect([&] { check_engine(settings, whole); });
  mistakes.collect([&] { check_agents(settings, whole); });
  mistakes.throw_any();
}

} // namespace troupe
