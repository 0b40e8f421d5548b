#include "plans/workflow/user_workflow.hpp"

#include "config/base/error.hpp"
#include "plans/plan/plan_names.hpp"

#include "troupe/workflow.hpp"
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace troupe::plans {

namespace {

using detail::UserCall;
using detail::UserKind;

bool has_kind(const detail::WorkflowParts& parts, UserKind kind) {
  return std::ranges::find(parts.calls, kind, &UserCall::kind)
         != parts.calls.end();
}

bool is_written(const detail::WorkflowParts& parts, const KeyInfo& key) {
  return std::ranges::any_of(parts.calls, [&](const UserCall& call) {
    return std::ranges::find(call.writes, key) != call.writes.end();
  });
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end())
    names.push_back(name);
}

/// Returns the prefix of the tokens that a text is decoded from, if any.
std::optional<std::string> decoded_prefix(const detail::WorkflowParts& parts,
                                          const KeyInfo& key) {
  const auto prefix = detail::response_prefix(key);
  if (!prefix || is_written(parts, key)
      || std::ranges::none_of(parts.calls, [&](const UserCall& call) {
           return call.kind == UserKind::generate && call.prefix == *prefix;
         }))
    return std::nullopt;
  return prefix;
}

/// Returns the keys of columns: a response that no call writes is decoded from
/// tokens.
std::vector<std::string> columns_of(const detail::WorkflowParts& parts,
                                    const std::vector<KeyInfo>& reads) {
  std::vector<std::string> names;
  for (const KeyInfo& key : reads) {
    if (const auto prefix = decoded_prefix(parts, key)) {
      add_once(names, *prefix + "sequence_ids");
      add_once(names, *prefix + "loss_mask");
    } else {
      add_once(names, key.name);
    }
  }
  return names;
}

/// Makes `call` read a key of the generate call with this prefix.
void read_made(Call& call, const std::string& prefix, const std::string& key) {
  call.reads.push_back(prefix + key);
  if (!prefix.empty())
    call.renames.push_back({prefix + key, key});
}

/// Makes `call` read its tokens and the mask of those that the model made.
void read_sequences(Call& call, const std::string& prefix) {
  read_made(call, prefix, "sequence_ids");
  read_made(call, prefix, "loss_mask");
}

Call user_generate(const detail::WorkflowParts& parts, const UserCall& user) {
  Call call{.name = user.name,
            .kind = CallKind::generate,
            .role = user.role,
            .reads = {user.generation.prompt},
            .fn = "generate"};
  if (user.actor != nullptr)
    call.fn = user_fn(parts.name, user.name);
  call.by = {.user_actor = user.actor != nullptr, .with = user.generation.with};
  for (const std::string& key : columns_of(parts, user.reads))
    add_once(call.reads, key);
  if (user.generation.prompt != "prompt_ids")
    call.renames.push_back({user.generation.prompt, "prompt_ids"});
  for (const char* key :
       {"sequence_ids", "loss_mask", "logprobs", "truncated"}) {
    call.writes.push_back(user.prefix + key);
    if (!user.prefix.empty())
      call.renames.push_back({user.prefix + key, key});
  }
  for (const KeyInfo& key : user.writes)
    call.writes.push_back(key.name);
  return call;
}

Call user_inference(const UserCall& user) {
  Call call{.name = user.name,
            .kind = CallKind::inference,
            .role = user.role,
            .writes = {user.writes.front().name}};
  call.fn = user.infer == Infer::logprobs ? "logprobs"
            : user.infer == Infer::values ? "values"
                                          : "scores";
  read_made(call, user.prefix, "sequence_ids");
  if (user.infer == Infer::logprobs)
    read_made(call, user.prefix, "loss_mask");
  if (call.writes.front() != call.fn)
    call.renames.push_back({call.writes.front(), call.fn});
  return call;
}

Call user_reward(const UserCall& user) {
  Call call{.name = user.name,
            .kind = CallKind::function,
            .writes = {user.writes.front().name},
            .fn = "rewards",
            .scope = Scope::sample};
  if (call.writes.front() != "scores")
    call.renames = {{call.writes.front(), "scores"}};
  read_sequences(call, user.prefix);
  return call;
}

Call user_function(const detail::WorkflowParts& parts, const UserCall& user) {
  Call call{.name = user.name,
            .kind = CallKind::function,
            .reads = columns_of(parts, user.reads),
            .fn = user_fn(parts.name, user.name)};
  call.by.user_actor = user.actor != nullptr;
  for (const KeyInfo& key : user.writes)
    call.writes.push_back(key.name);
  if (user.kind != UserKind::batch)
    call.scope = user.kind == UserKind::each ? Scope::sample : Scope::group;
  return call;
}

Call user_train(const detail::WorkflowParts& parts, const UserCall& user) {
  Call call{.name = user.name,
            .kind = CallKind::train,
            .role = user.role,
            .fn = user_fn(parts.name, user.name)};
  read_sequences(call, user.prefix);
  for (const KeyInfo& key : user.reads)
    add_once(call.reads, key.name);
  return call;
}

Call user_call(const detail::WorkflowParts& parts, const UserCall& user) {
  switch (user.kind) {
  case UserKind::generate:
    return user_generate(parts, user);
  case UserKind::infer:
    return user_inference(user);
  case UserKind::reward:
    return user_reward(user);
  case UserKind::train:
    return user_train(parts, user);
  default:
    return user_function(parts, user);
  }
}

Call user_metrics(const detail::WorkflowParts& parts) {
  Call call{.name = metrics_call,
            .kind = CallKind::function,
            .fn = user_fn(parts.name, metrics_call)};
  for (const auto& metric : parts.metrics)
    add_once(call.reads, metric.key.name);
  return call;
}

std::string metric_of(const detail::WorkflowParts& parts,
                      const CarriedInfo& value) {
  const auto at = std::ranges::find(parts.carried_metrics, value.name,
                                    &detail::UserCarriedMetric::value);
  return at == parts.carried_metrics.end() ? "" : at->name;
}

/// Returns the keys of the data set: token ids, and texts that no call writes.
std::vector<std::string> dataset_keys(const detail::WorkflowParts& parts,
                                      const Workflow& workflow) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& key) {
    if (workflow.writer(key) == nullptr)
      add_once(names, key);
  };
  for (const Call& call : workflow.calls)
    for (const std::string& key : call.reads)
      if (key == "prompt_ids"
          || (!has_kind(parts, UserKind::generate)
              && (key == "sequence_ids" || key == "loss_mask")))
        add(key);
  for (const UserCall& user : parts.calls)
    for (const KeyInfo& key : user.reads)
      if (key.type == KeyType::text && !decoded_prefix(parts, key))
        add(key.name);
  return names;
}

/// A key with the type by which call `who` uses it.
struct KeyUse {
  KeyInfo key;
  std::string who;
};

/// Returns the keys that a call reads or writes without its author naming them.
std::vector<KeyInfo> implied_keys(const UserCall& call) {
  if (call.kind == UserKind::generate)
    return {{call.generation.prompt, KeyType::i32, Per::token},
            {call.prefix + "sequence_ids", KeyType::i32, Per::token},
            {call.prefix + "loss_mask", KeyType::u8, Per::token},
            {call.prefix + "logprobs", KeyType::f32, Per::token},
            {call.prefix + "truncated", KeyType::u8, Per::sample}};
  if (call.kind == UserKind::infer)
    return {{call.writes.front().name, KeyType::f32,
             call.infer == Infer::scores ? Per::sample : Per::token}};
  return {};
}

std::string type_text(const KeyInfo& key) {
  constexpr std::array types{"float", "std::int32_t", "std::uint8_t",
                             "std::string"};
  return fmt::format("Key<{}{}>", types.at(static_cast<std::size_t>(key.type)),
                     key.per == Per::token ? ", per_token" : "");
}

} // namespace

void check_key_types(const detail::WorkflowParts& parts) {
  std::vector<KeyUse> uses;
  const auto add = [&](const KeyInfo& key, const std::string& who) {
    const auto first = std::ranges::find_if(
      uses, [&](const KeyUse& use) { return use.key.name == key.name; });
    if (first == uses.end())
      uses.push_back({key, who});
    else if (first->key != key)
      throw ConfigError(
        Place{}, fmt::format("workflow {}: key {} is {} in {} and {} in {}; "
                             "try the same in both",
                             parts.name, key.name, type_text(first->key),
                             first->who, type_text(key), who));
  };
  for (const UserCall& call : parts.calls) {
    for (const KeyInfo& key : implied_keys(call))
      add(key, call.name);
    for (const auto* keys : {&call.writes, &call.reads})
      for (const KeyInfo& key : *keys)
        add(key, call.name);
  }
  for (const auto& metric : parts.metrics)
    add(metric.key, "metric " + metric.name);
}

void check_sources(const detail::WorkflowParts& parts) {
  const auto workflow = user_workflow(parts);
  std::vector<std::string> known = workflow.dataset_keys;
  for (const Call& call : workflow.calls)
    known.insert(known.end(), call.writes.begin(), call.writes.end());
  const auto meant = [&](const std::string& key) {
    const auto near = nearest(key, known);
    return near.empty() ? "a call that does" : "'" + near + "'";
  };
  for (const UserCall& call : parts.calls)
    for (const KeyInfo& key : call.reads)
      if (key.type != KeyType::text
          && std::ranges::find(known, key.name) == known.end())
        throw ConfigError(
          Place{},
          fmt::format("workflow {}: call {} reads key '{}', which nobody "
                      "writes; try {}, or troupe::Key<std::string>, as "
                      "columns of the data file (data.fields) are texts",
                      parts.name, call.name, key.name, meant(key.name)));
}

void check_carried(const detail::WorkflowParts& parts) {
  const auto refuse = [&](const std::string& what) {
    throw ConfigError(Place{},
                      fmt::format("workflow {}: {}", parts.name, what));
  };
  std::map<std::string, std::string> writers;
  std::vector<std::string> known;
  for (const UserCall& call : parts.calls)
    for (const CarriedInfo& value : call.carried_out)
      if (const auto [first, is_new]
          = writers.try_emplace(value.name, call.name);
          !is_new)
        refuse(fmt::format("carried value {} has two writers: {} and {}",
                           value.name, first->second, call.name));
  for (const auto& [name, writer] : writers)
    known.push_back(name);
  const auto writer_of = [&](const std::string& name, const std::string& who) {
    const auto at = writers.find(name);
    if (at == writers.end())
      refuse(fmt::format("{} reads carried value '{}', which nobody writes{}",
                         who, name, nearest_hint(name, known)));
    return at->second;
  };
  for (const UserCall& call : parts.calls)
    for (const CarriedInfo& value : call.carried_in)
      if (const auto writer = writer_of(value.name, "call " + call.name);
          writer != call.name)
        refuse(fmt::format("call {} reads carried value {}, which {} writes; "
                           "try a key that {} writes from it",
                           call.name, value.name, writer, writer));
  for (const auto& metric : parts.carried_metrics)
    writer_of(metric.value, "metric " + metric.name);
}

std::string user_fn(const std::string& workflow, const std::string& call) {
  return workflow + "." + call;
}

Workflow user_workflow(const detail::WorkflowParts& parts) {
  Workflow workflow{.name = parts.name};
  workflow.samples_are_prompts = has_kind(parts, UserKind::generate);
  for (const auto& role : parts.roles) {
    workflow.roles.push_back({.name = role.name,
                              .trained = role.kind.is_trained,
                              .scalar_head = role.kind.has_scalar_head});
    if (!role.kind.followed.empty())
      workflow.roles.back().ema = {.role = role.kind.followed};
  }
  for (const UserCall& call : parts.calls)
    workflow.calls.push_back(user_call(parts, call));
  for (const UserCall& call : parts.calls)
    for (const CarriedInfo& value : call.carried_out)
      workflow.carried.push_back({.name = value.name,
                                  .initial = value.initial,
                                  .metric = metric_of(parts, value)});
  if (!parts.metrics.empty())
    workflow.calls.push_back(user_metrics(parts));
  workflow.dataset_keys = dataset_keys(parts, workflow);
  return workflow;
}

WorkflowTraits user_traits(const detail::WorkflowParts& parts,
                           std::vector<std::string> sections) {
  WorkflowTraits traits{.name = parts.name, .sentence = parts.sentence};
  if (has_kind(parts, UserKind::generate)) {
    traits.data = DataKind::prompts;
    traits.groups = {SettingsGroup::rollout, SettingsGroup::updates};
  } else {
    traits.data = DataKind::sft;
    traits.groups = {SettingsGroup::sequences};
  }
  if (has_kind(parts, UserKind::reward))
    traits.groups.push_back(SettingsGroup::rewards);
  if (std::ranges::any_of(parts.calls, [](const UserCall& call) {
        return call.actor != nullptr;
      }))
    traits.groups.push_back(SettingsGroup::user_actors);
  for (const auto& role : parts.roles)
    traits.roles.push_back({.name = role.name,
                            .trained = role.kind.is_trained,
                            .scalar_head = role.kind.has_scalar_head,
                            .default_path_of = role.kind.default_path_of});
  traits.sections = std::move(sections);
  return traits;
}

} // namespace troupe::plans
