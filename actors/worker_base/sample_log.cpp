#include "actors/worker_base/sample_log.hpp"

#include "actors/worker_base/user_calls.hpp"
#include "config/base/error.hpp"
#include "plans/workflow/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace troupe::actors {

namespace {

// Stored without being named. The numbers of agents are the scores.
constexpr std::array<std::string_view, 5> response_keys
  = {"sequence_ids", "loss_mask", "logprobs", "truncated", "agent_rewards"};

/// Returns the info of a key that a generate call writes.
KeyInfo info_of(const plans::Call& call, const std::string& key) {
  const auto& argument = call.argument(key);
  for (KeyInfo known :
       {info(keys::sequence_ids), info(keys::loss_mask), info(keys::logprobs),
        info(keys::truncated), KeyInfo{"kept_counts", KeyType::i32, Per::token},
        KeyInfo{"kept_ids", KeyType::i32, Per::token},
        KeyInfo{"routed_experts", KeyType::i32, Per::token}})
    if (known.name == argument) {
      known.name = key;
      return known;
    }
  const auto* user = find_user_entry(call.fn);
  TROUPE_CHECK(user != nullptr, key + " is no key of an answer");
  const auto at
    = std::ranges::find(user->call.writes, argument, &KeyInfo::name);
  TROUPE_CHECK(at != user->call.writes.end(), call.name + " writes no " + key);
  return *at;
}

/// Returns whether a call of ours writes the key; a user-defined key of the
/// same name may have another type.
bool is_built_in(const plans::Workflow& workflow, std::string_view key) {
  const auto* writer = workflow.writer(key);
  return writer != nullptr && find_user_entry(writer->fn) == nullptr;
}

/// Returns the workflow plus its recording call; unchanged if it generates
/// nothing to train on.
plans::Workflow with_sample_log(plans::Workflow workflow) {
  const auto has = [&](plans::CallKind kind) {
    return std::ranges::any_of(workflow.calls, [=](const plans::Call& call) {
      return call.kind == kind;
    });
  };
  if (workflow.writer("sequence_ids") == nullptr
      || !has(plans::CallKind::train))
    return workflow;
  plans::Call call;
  call.name = record_fn;
  call.kind = plans::CallKind::function;
  call.fn = record_fn;
  call.scope = plans::Scope::batch;
  for (const char* key :
       {"sequence_ids", "loss_mask", "logprobs", "truncated", "scores"})
    if (workflow.writer(key) != nullptr)
      call.reads.emplace_back(key);
  for (const char* key : {"ref_logprobs", "advantages"})
    if (is_built_in(workflow, key))
      call.reads.emplace_back(key);
  for (const KeyInfo& key : sample_keys(workflow))
    call.reads.push_back(key.name);
  workflow.calls.push_back(std::move(call));
  return workflow;
}

} // namespace

std::vector<KeyInfo> recorded_keys(const plans::Workflow& workflow) {
  std::vector<KeyInfo> recorded;
  for (const auto& call : workflow.calls) {
    if (call.kind != plans::CallKind::generate || call.greedy || call.evaluates)
      continue;
    for (const auto& key : call.writes)
      if (std::ranges::find(response_keys, key) == response_keys.end())
        recorded.push_back(info_of(call, key));
  }
  return recorded;
}

std::vector<KeyInfo> sample_keys(const plans::Workflow& workflow) {
  auto keys = recorded_keys(workflow);
  for (const auto& call : workflow.calls) {
    const auto* user = find_user_entry(call.fn);
    if (user == nullptr || call.evaluates)
      continue;
    for (const auto& metric : user->metrics)
      if (metric.key.per == Per::sample && metric.key.name != "scores"
          && metric.key.name != "truncated"
          && std::ranges::find(keys, metric.key) == keys.end())
        keys.push_back(metric.key);
  }
  return keys;
}

std::filesystem::path evaluation_file(const std::filesystem::path& run_folder,
                                      StepId step) {
  return run_folder / "eval" / fmt::format("step_{:06}.jsonl", step.value);
}

RunCalls run_calls(const plans::Workflow& workflow,
                   const plans::ExecutionPlan& plan, const Settings& settings,
                   bool only_evaluates) {
  const auto all = plans::with_evaluation(with_sample_log(workflow), settings);
  return {only_evaluates ? plans::evaluation_of(all) : all,
          plans::place_evaluation(plan, all)};
}

} // namespace troupe::actors
