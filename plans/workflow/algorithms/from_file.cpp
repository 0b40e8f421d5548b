#include "config/base/did_you_mean.hpp"
#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "plans/workflow/rl_calls.hpp"
#include "plans/workflow/user_workflow.hpp"
#include "plans/workflow/workflow_file.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::plans {

namespace {

CallKind kind_of(const std::string& word) {
  if (word == "generate")
    return CallKind::generate;
  if (word == "infer")
    return CallKind::inference;
  return word == "train" ? CallKind::train : CallKind::function;
}

Call call_of(const FileCall& from) {
  Call call{.name = from.name,
            .kind = kind_of(from.kind),
            .role = from.role,
            .reads = from.reads,
            .writes = from.writes,
            .fn = from.fn,
            .by = {.with = from.with},
            .greedy = from.greedy};
  if (call.fn == "rewards")
    call.scope = Scope::sample;
  for (const auto& [key, word] : from.renames)
    call.renames.push_back({key, word});
  return call;
}

Scope scope_of(const PythonCall& python) {
  if (python.scope == "batch")
    return Scope::batch;
  return python.scope == "sample" ? Scope::sample : Scope::group;
}

bool holds_key(const std::vector<std::string>& keys, const std::string& key) {
  return std::ranges::find(keys, key) != keys.end();
}

/// Checks that a user-defined function sees all keys that its C++ declares,
/// under whatever name.
void check_user_keys(const Call& call, const Call& own, const Place& place,
                     const char* what, std::vector<std::string> Call::*keys) {
  std::vector<std::string> words;
  for (const auto& key : call.*keys)
    words.push_back(call.argument(key));
  for (const auto& key : own.*keys)
    if (!holds_key(words, own.argument(key)))
      throw ConfigError({.place = place,
                         .path = fmt::format("calls.{}.{}", call.name, what),
                         .expected = fmt::format("all keys of {}", own.fn),
                         .got = fmt::format("them without {}", key),
                         .hint = fmt::format("`{0}`, or a mapping that has "
                                             "`KEY: {0}`",
                                             own.argument(key))});
}

[[noreturn]] void fn_mistake(const Call& call, const Place& place,
                             const std::string& expected,
                             const std::string& got, const std::string& hint) {
  const bool is_function = call.kind == CallKind::function;
  throw ConfigError({.place = place,
                     .path = fmt::format("calls.{}.{}", call.name,
                                         is_function ? "function" : "fn"),
                     .expected = expected,
                     .got = got,
                     .hint = hint});
}

/// Returns the call of the program's workflow that `call` names.
const Call& user_call_of(const Call& call, const std::optional<Workflow>& own,
                         const Place& place) {
  const auto name = call.fn.substr(0, call.fn.find('.'));
  if (!own)
    fn_mistake(call, place, "a call of a workflow that this program has",
               "'" + call.fn + "'", "");
  std::vector<std::string> known;
  for (const auto& one : own->calls) {
    if (one.fn == call.fn)
      return one;
    if (one.fn.starts_with(name + "."))
      known.push_back(one.fn);
  }
  fn_mistake(call, place, "a call of workflow " + name, "'" + call.fn + "'",
             nearest_word(call.fn, known));
}

/// Adds what only the program knows of its function, and keys that the file
/// omits.
void add_own_part(Call& call, const Call& own, const Place& place) {
  if (call.kind != own.kind)
    fn_mistake(
      call, place, fmt::format("the name of a {} call", to_string(call.kind)),
      fmt::format("'{}', a {} call", call.fn, to_string(own.kind)), "");
  call.scope = own.scope;
  call.by.user_actor = own.by.user_actor;
  if (call.by.with.empty())
    call.by.with = own.by.with;
  for (auto keys : {&Call::reads, &Call::writes}) {
    if (!(call.*keys).empty())
      continue;
    call.*keys = own.*keys;
    for (const auto& rename : own.renames)
      if (holds_key(own.*keys, rename.key))
        call.renames.push_back(rename);
  }
  check_user_keys(call, own, place, "reads", &Call::reads);
  check_user_keys(call, own, place, "writes", &Call::writes);
}

bool is_written(const WorkflowFile& file, const std::string& key) {
  return std::ranges::any_of(file.calls, [&](const FileCall& call) {
    return holds_key(call.writes, key);
  });
}

/// Adds what the file alone knows of a Python function: its scope, the tokens
/// that a response is decoded from or a conversation begins with, and the
/// `texts` of the data set's rows.
void add_python_part(Call& call, const FileCall& from, const WorkflowFile& file,
                     std::vector<std::string>& texts) {
  call.reads.clear();
  if (from.kind == "generate") {
    call.by.user_actor = true;
    call.reads.emplace_back("prompt_ids");
  } else {
    call.scope = scope_of(*from.python);
  }
  for (const auto& key : from.reads) {
    const bool is_decoded = key == "response" && !is_written(file, key);
    for (const auto& column :
         is_decoded ? std::vector<std::string>{"sequence_ids", "loss_mask"}
                    : std::vector<std::string>{key})
      if (!holds_key(call.reads, column))
        call.reads.push_back(column);
    const auto known = known_key(key);
    if (!is_decoded && (!known || known->type == KeyType::text))
      texts.push_back(key); // which no call writes: see add_dataset_keys
  }
}

/// Returns the call that computes the metrics of the file.
Call metrics_of(const WorkflowFile& file) {
  Call call{.name = metrics_call,
            .kind = CallKind::function,
            .fn = user_fn(file.traits.name, metrics_call)};
  for (const auto& metric : file.metrics)
    if (!holds_key(call.reads, metric.key))
      call.reads.push_back(metric.key);
  return call;
}

/// Checks that what a generation records for training is written with the
/// setting that makes training read it.
void check_records(const Call& call, const Settings& settings,
                   const Place& place) {
  const auto& loss = settings.algorithm.loss;
  const auto need = [&](const char* record, const char* setting, bool is_set) {
    for (const auto& key : call.writes)
      if (call.fn == "generate" && call.argument(key) == record && !is_set)
        throw ConfigError(
          {.place = place,
           .path = fmt::format("calls.{}.writes", call.name),
           .expected = fmt::format("{} with {} only", record, setting),
           .got = "it without",
           .hint = fmt::format("{}=true, or leaving it out", setting)});
  };
  need("kept_ids", "algorithm.sampling_mask", loss.sampling_mask);
  need("routed_experts", "algorithm.routing_replay", loss.routing_replay);
}

/// Adds the tokens of the data set that calls read, and the texts that
/// user-defined calls take from its rows.
void add_dataset_keys(Workflow& workflow, DataKind data, bool margins,
                      const std::vector<std::string>& texts) {
  std::vector<std::string> keys = {"sequence_ids", "loss_mask"};
  if (data == DataKind::prompts)
    keys = {"prompt_ids"};
  else if (data == DataKind::preference)
    keys = {"chosen_ids", "chosen_loss_mask", "rejected_ids",
            "rejected_loss_mask"};
  else if (data == DataKind::labelled)
    keys.emplace_back("desirable");
  if (data == DataKind::preference && margins)
    keys.emplace_back("pair_margin");
  keys.insert(keys.end(), texts.begin(), texts.end());
  for (const auto& key : keys)
    if (workflow.writer(key) == nullptr
        && !holds_key(workflow.dataset_keys, key)
        && std::ranges::any_of(workflow.calls, [&](const Call& call) {
             return holds_key(call.reads, key);
           }))
      workflow.dataset_keys.push_back(key);
}

/// Checks that programs of agents.command have one generation to lead.
void check_agents(const Workflow& workflow, const WorkflowFile& file,
                  const Settings& settings) {
  if (agents_of(settings).command.empty())
    return;
  std::vector<std::string> generates;
  for (const auto& call : workflow.calls)
    if (call.kind == CallKind::generate)
      generates.push_back(call.name);
  for (const auto& name : generates)
    if (const auto& fn = workflow.call(name).fn;
        fn != "generate" || generates.size() > 1)
      throw ConfigError({.place = file.places.at("calls." + generates.back()),
                         .path = "calls." + generates.back(),
                         .expected
                         = "one generation, without an actor of yours, "
                           "with agents.command",
                         .got = fmt::format("{}", fmt::join(generates, ", ")),
                         .hint = "one `generate`, or agents.command=null"});
}

std::vector<Role> roles_of_file(const WorkflowFile& file) {
  std::vector<Role> roles;
  for (const auto& role : file.traits.roles) {
    roles.push_back({.name = role.name,
                     .trained = role.trained,
                     .scalar_head = role.scalar_head});
    if (!role.ema.empty())
      roles.back().ema = {.role = role.ema};
  }
  return roles;
}

} // namespace

Workflow file_workflow(const WorkflowFile& file, const Settings& settings,
                       const FindWorkflow& find_user) {
  Workflow workflow{.name = file.traits.name,
                    .roles = roles_of_file(file),
                    .samples_are_prompts
                    = file.traits.data == DataKind::prompts};
  std::vector<std::string> texts;
  for (const auto& from : file.calls) {
    auto& call = workflow.calls.emplace_back(call_of(from));
    if (from.python) {
      if (from.kind != "train") // a loss reads just the keys that it lists
        add_python_part(call, from, file, texts);
    } else if (const auto dot = from.fn.find('.'); dot != from.fn.npos) {
      const auto own = find_user(from.fn.substr(0, dot));
      const auto& place = file.places.at("calls." + from.name);
      add_own_part(call, user_call_of(call, own, place), place);
      texts.insert(texts.end(), own->dataset_keys.begin(),
                   own->dataset_keys.end());
    }
    check_records(call, settings, file.places.at("calls." + from.name));
    for (const auto& value : from.carries)
      workflow.carried.push_back({.name = value.name,
                                  .initial = initial_value(value, settings),
                                  .metric = value.metric});
  }
  if (!file.metrics.empty())
    workflow.calls.push_back(metrics_of(file));
  add_dataset_keys(workflow, file.traits.data, has_margin(settings), texts);
  check_agents(workflow, file, settings);
  internal::add_agents(workflow, settings);
  if (workflow.samples_are_prompts)
    internal::add_rounds(workflow, settings);
  return workflow;
}

} // namespace troupe::plans
