#include "actors/worker_base/file_entries.hpp"

#include "actors/worker_base/user_calls.hpp"
#include "config/settings/settings.hpp"
#include "models/losses/python_loss.hpp"
#include "plans/workflow/user_workflow.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

using detail::UserKind;

/// Returns the name by which a call's code knows a key.
const std::string& word_in(const FileCall& call, const std::string& key) {
  const auto at = std::ranges::find(
    call.renames, key, &std::pair<std::string, std::string>::first);
  return at == call.renames.end() ? key : at->second;
}

std::optional<KeyInfo> find_key(const std::vector<KeyInfo>& keys,
                                const std::string& name) {
  const auto at = std::ranges::find(keys, name, &KeyInfo::name);
  return at == keys.end() ? std::nullopt : std::optional(*at);
}

/// Returns what the call that writes a key makes of it; nullopt: unknown.
std::optional<KeyInfo> written_by(const FileCall& writer,
                                  const std::string& key) {
  if (writer.python)
    if (const auto found = find_key(writer.python->writes, key))
      return found;
  const auto& word = word_in(writer, key);
  if (const auto* user = find_user_entry(writer.fn))
    if (const auto found = find_key(user->call.writes, word))
      return found;
  return known_key(word);
}

/// Returns what a key holds, which `who` (calls.check, metrics.score) reads.
KeyInfo key_of(const WorkflowFile& file, const std::string& key,
               const std::string& who, const Place& place) {
  const auto writer
    = std::ranges::find_if(file.calls, [&](const FileCall& call) {
        return std::ranges::find(call.writes, key) != call.writes.end();
      });
  if (writer == file.calls.end())
    return known_key(key).value_or(KeyInfo{key, KeyType::text, Per::sample});
  auto found = written_by(*writer, key);
  if (!found)
    throw ConfigError({.place = place,
                       .path = who,
                       .expected = "keys of which is known what they hold",
                       .got = fmt::format("'{}' of {}", key, writer->name),
                       .hint = "a function of the program that reads it"});
  found->name = key;
  return *found;
}

UserKind kind_of(const FileCall& call) {
  const PythonCall& python = *call.python;
  if (call.kind == "generate")
    return UserKind::generate;
  if (python.scope == "batch")
    return UserKind::batch;
  return python.scope == "sample" ? UserKind::each : UserKind::groups;
}

UserEntry python_entry(const WorkflowFile& file, const FileCall& from) {
  const auto& place = file.places.at("calls." + from.name);
  UserEntry entry{.is_of_file = true};
  entry.call.name = from.name;
  entry.call.kind = kind_of(from);
  entry.call.writes = from.python->writes;
  for (const auto& key : from.reads) {
    auto info = key_of(file, key, "calls." + from.name + ".reads", place);
    info.name = word_in(from, key);
    if (key == "response" && info.name != key)
      throw ConfigError({.place = place,
                         .path = "calls." + from.name + ".reads",
                         .expected = "response under its own name",
                         .got = "it as " + info.name,
                         .hint = "reads: [response]"});
    entry.call.reads.push_back(std::move(info));
  }
  for (const auto& value : from.carries)
    entry.call.carried_out.push_back({value.name, value.initial});
  entry.call.carried_in = entry.call.carried_out;
  entry.python = PythonEntry{
    .function = python_function(from.fn),
    .processes = static_cast<std::uint32_t>(from.python->processes)};
  if (entry.call.kind == UserKind::generate)
    entry.actor.name = entry.python->function.name;
  return entry;
}

/// Returns the loss of a call, whose keys are numbers.
models::LossEntry python_loss_of(const WorkflowFile& file,
                                 const FileCall& from) {
  const auto& place = file.places.at("calls." + from.name);
  const auto path = "calls." + from.name + ".reads";
  for (const auto& key : from.reads)
    if (key_of(file, key, path, place).type == KeyType::text)
      throw ConfigError({.place = place,
                         .path = path,
                         .expected = "keys of numbers that a call writes",
                         .got = "'" + key + "', a text",
                         .hint = "a function that writes a number of it"});
  const auto role
    = std::ranges::find(file.traits.roles, from.role, &RoleTraits::name);
  return models::python_loss_entry(from, role != file.traits.roles.end()
                                           && role->scalar_head);
}

UserEntry metrics_entry(const WorkflowFile& file) {
  UserEntry entry{.is_of_file = true};
  entry.call.name = plans::metrics_call;
  entry.call.kind = UserKind::batch;
  for (const auto& metric : file.metrics) {
    const auto path = "metrics." + metric.name;
    auto key = key_of(file, metric.key, path, metric.place);
    if (key.type == KeyType::text)
      throw ConfigError({.place = metric.place,
                         .path = path,
                         .expected = "a key of numbers that a call writes",
                         .got = "'" + metric.key + "'",
                         .hint = ""});
    entry.metrics.push_back({metric.name, std::move(key)});
  }
  return entry;
}

} // namespace

void add_file_entries(const WorkflowFile& file) {
  for (const auto& call : file.calls)
    if (call.python && call.kind == "train")
      models::set_file_loss(python_loss_of(file, call));
    else if (call.python)
      set_file_entry(call.fn, python_entry(file, call));
  if (!file.metrics.empty())
    set_file_entry(plans::user_fn(file.traits.name, plans::metrics_call),
                   metrics_entry(file));
}

void add_file_entries(const Settings& settings) {
  if (is_workflow_file(settings.workflow))
    add_file_entries(read_workflow_file(settings.workflow));
}

} // namespace troupe::actors
