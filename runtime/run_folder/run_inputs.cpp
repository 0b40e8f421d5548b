#include "runtime/run_folder/run_inputs.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "config/base/error.hpp"
#include "config/settings/data_files.hpp"
#include "models/data/plain_rows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace troupe::runtime {

namespace {

std::string keys_text(const plans::Call& call,
                      const std::vector<std::string>& keys) {
  std::string text;
  for (const auto& key : keys) {
    const auto& word = call.argument(key);
    text += text.empty() ? "" : ", ";
    text += word == key ? key : fmt::format("{} ({})", key, word);
  }
  return text.empty() ? "nothing" : text;
}

std::string_view scope_text(plans::Scope scope) {
  switch (scope) {
  case plans::Scope::sample:
    return " of samples";
  case plans::Scope::group:
    return " of groups";
  case plans::Scope::batch:
    return " of batches";
  }
  return "";
}

std::string call_text(const plans::Call& call) {
  const bool is_function = call.kind == plans::CallKind::function;
  return fmt::format(
    "{} {}{} from {} to {}{}{}", to_string(call.kind), call.fn,
    is_function ? scope_text(call.scope) : " of " + call.role,
    keys_text(call, call.reads), keys_text(call, call.writes),
    call.greedy ? ", greedy" : "",
    call.by.with.empty()
      ? ""
      : fmt::format(", with {}", fmt::join(call.by.with, ", ")));
}

std::string role_text(const plans::Role& role) {
  return fmt::format("{}{}{}", role.trained ? "trained" : "frozen",
                     role.scalar_head ? " with a scalar head" : "",
                     role.ema ? ", follows " + role.ema->role : "");
}

bool only_shows(const plans::Call& call) {
  return call.kind == plans::CallKind::function && call.writes.empty();
}

/// Returns the marks of the plain rows of each file: how they are compressed
/// does not matter.
std::string train_mark(const Settings& settings) {
  std::string marks;
  for (const auto& file : train_files(settings.data))
    marks
      += (marks.empty() ? "" : ", ") + file_mark(models::plain_rows(file.path));
  return marks;
}

} // namespace

std::string file_mark(const std::filesystem::path& file) {
  return fmt::format("{} bytes (CRC-32 {:08x})",
                     std::filesystem::file_size(file),
                     actors::checksum_of(file));
}

RunInputs inputs_of(const Settings& settings, const plans::Workflow& workflow) {
  RunInputs inputs;
  for (const auto& role : workflow.roles)
    inputs["roles." + role.name] = role_text(role);
  for (const auto& call : workflow.calls)
    if (!only_shows(call))
      inputs["calls." + call.name] = call_text(call);
  for (const auto& value : workflow.carried)
    inputs["carried " + value.name] = fmt::format("{}", value.initial);
  inputs[data_file_input] = train_mark(settings);
  if (models::is_data_file(settings.data.ptx))
    inputs["the file of data.ptx"]
      = file_mark(models::plain_rows(settings.data.ptx));
  return inputs;
}

std::string print_inputs(const RunInputs& inputs) {
  return nlohmann::json(inputs).dump(2) + "\n";
}

RunInputs parse_inputs(const std::string& text, const std::string& file) {
  try {
    return nlohmann::json::parse(text).get<RunInputs>();
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError({.place = {file, 0},
                       .path = "",
                       .expected = "what a start of this run wrote",
                       .got = error.what(),
                       .hint = "removing it, if the data and the workflow are "
                               "those that the run began with"});
  }
}

std::vector<SettingChange> changed_inputs(const RunInputs& before,
                                          const RunInputs& now) {
  const auto value = [](const RunInputs& inputs, const std::string& name) {
    const auto at = inputs.find(name);
    return at == inputs.end() ? "" : at->second;
  };
  auto names = before;
  names.insert(now.begin(), now.end());
  std::vector<SettingChange> changes;
  for (const auto& [name, what] : names)
    if (value(before, name) != value(now, name))
      changes.push_back({name, value(before, name), value(now, name)});
  return changes;
}

} // namespace troupe::runtime
