#include "plans/workflow/evaluation.hpp"

#include "config/base/error.hpp"
#include "config/settings/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace troupe::plans {

namespace {

const std::string eval_prefix = "eval_";

using Keys = std::vector<std::string>;

Call judge(const char* fn, Keys reads) {
  return {.name = fn,
          .kind = CallKind::function,
          .reads = std::move(reads),
          .fn = fn,
          .evaluates = true};
}

/// Returns the call without what only training reads of responses: masks and
/// experts.
Call without_masks(Call twin) {
  const auto is_mask = [](const std::string& argument) {
    return argument == "kept_counts" || argument == "kept_ids"
           || argument == "routed_experts";
  };
  if (twin.kind != CallKind::generate)
    return twin;
  std::erase_if(twin.writes, [&](const std::string& key) {
    return is_mask(twin.argument(key));
  });
  std::erase_if(twin.renames,
                [&](const Rename& rename) { return is_mask(rename.argument); });
  return twin;
}

/// Appends twins of the calls that make `keys`.
void add_twins(Workflow& workflow, Keys keys) {
  const auto makers = makers_of(workflow, std::move(keys));
  std::vector<Call> twins;
  for (const auto& call : workflow.calls)
    if (makers.contains(call.name))
      twins.emplace_back(without_masks(twin_of(workflow, call, eval_prefix)))
        .evaluates
        = true;
  workflow.calls.insert(workflow.calls.end(), twins.begin(), twins.end());
}

/// Appends responses to prompts, scored as in training.
void add_responses(Workflow& workflow) {
  add_twins(workflow, {"scores"});
  workflow.calls.push_back(
    judge("eval_answers", {"eval_scores", "eval_sequence_ids", "eval_loss_mask",
                           "eval_truncated"}));
}

/// Appends an inference of a trained model over held-out rows.
void add_inference(Workflow& workflow, const Call& train, const char* fn,
                   const Keys& writes) {
  Call call{.name = eval_prefix + "inf",
            .kind = CallKind::inference,
            .role = train.role,
            .fn = fn,
            .evaluates = true};
  for (const auto& key : train.reads)
    if (workflow.writer(key) == nullptr)
      call.reads.push_back(key);
  for (const auto& key : writes) {
    call.writes.push_back(eval_prefix + key);
    call.renames.push_back({eval_prefix + key, key});
  }
  workflow.calls.push_back(std::move(call));
}

/// Appends KTO's log-probabilities of held-out rows and of their mismatched
/// pairs. The point is computed by the judge, which sees all rows.
void add_labels(Workflow& workflow, const Call& train) {
  Keys read = {"loss_mask", "desirable", eval_prefix + "logprobs"};
  const Keys made
    = {"ref_logprobs", "kl_loss_mask", "kl_logprobs", "kl_ref_logprobs"};
  add_twins(workflow, made);
  for (const auto& key : made)
    read.push_back(eval_prefix + key);
  add_inference(workflow, train, "logprobs", {"logprobs"});
  workflow.calls.push_back(judge("eval_labels", read));
}

} // namespace

bool evaluates(const Settings& settings) {
  return !settings.eval.data.empty();
}

Workflow with_evaluation(Workflow workflow, const Settings& settings) {
  if (!evaluates(settings))
    return workflow;
  const auto* scorer = workflow.writer("scores");
  const auto first
    = std::ranges::find(workflow.calls, CallKind::train, &Call::kind);
  const Call train = first == workflow.calls.end() ? Call{} : *first;
  const auto& fn = train.fn;
  if (workflow.samples_are_prompts && scorer != nullptr) {
    add_responses(workflow);
  } else if (fn == "sft_loss") {
    add_inference(workflow, train, "logprobs", {"logprobs"});
    workflow.calls.push_back(
      judge("eval_sequences", {"loss_mask", "eval_logprobs"}));
  } else if (fn == "reward_loss") {
    add_inference(workflow, train, "scores",
                  {"chosen_scores", "rejected_scores"});
    Keys read = {"eval_chosen_scores", "eval_rejected_scores"};
    if (has_margin(settings))
      read.emplace_back("pair_margin");
    workflow.calls.push_back(judge("eval_pairs", read));
  } else if (fn == "dpo_loss") {
    Keys read = {"chosen_loss_mask", "rejected_loss_mask",
                 "eval_chosen_logprobs", "eval_rejected_logprobs"};
    const Keys reference = {"chosen_ref_logprobs", "rejected_ref_logprobs"};
    if (workflow.writer(reference.front()) != nullptr) {
      add_twins(workflow, reference);
      for (const auto& key : reference)
        read.push_back(eval_prefix + key);
    }
    add_inference(workflow, train, "logprobs",
                  {"chosen_logprobs", "rejected_logprobs"});
    workflow.calls.push_back(judge("eval_preferences", read));
  } else if (fn == "kto_loss" && workflow.writer("kl_ref_logprobs")) {
    add_labels(workflow, train);
  } else {
    throw ConfigError({.place = place_of(settings, "eval.data"),
                       .path = "eval.data",
                       .expected = "a workflow whose answers get scores",
                       .got = "workflow " + workflow.name,
                       .hint = "eval.data=null"});
  }
  return workflow;
}

Evaluation evaluation_in(const Workflow& workflow, const Settings& settings,
                         std::uint32_t samples_per_step) {
  if (!evaluates(settings))
    return {};
  const auto a_row = workflow.samples_are_prompts ? settings.eval.n : 1;
  const auto samples = settings.eval.max_rows * std::max(1, a_row);
  return {.workflow = with_evaluation(workflow, settings),
          .samples = samples > 0 ? static_cast<std::uint32_t>(samples)
                                 : samples_per_step,
          .every
          = static_cast<std::uint32_t>(std::max(0, settings.eval.every))};
}

Workflow without_evaluation(Workflow workflow) {
  std::erase_if(workflow.calls, [](const Call& c) { return c.evaluates; });
  return workflow;
}

Workflow evaluation_of(const Workflow& workflow) {
  Workflow alone = workflow;
  alone.roles.clear();
  alone.calls.clear();
  alone.carried.clear();
  std::set<std::string> read;
  std::set<std::string> roles;
  for (const auto& call : workflow.calls) {
    if (!call.evaluates)
      continue;
    alone.calls.push_back(call);
    read.insert(call.reads.begin(), call.reads.end());
    roles.insert(call.role);
    roles.insert(call.by.with.begin(), call.by.with.end());
  }
  for (auto role : workflow.roles) {
    role.trained = false;
    role.ema.reset();
    if (roles.contains(role.name))
      alone.roles.push_back(std::move(role));
  }
  std::erase_if(alone.dataset_keys,
                [&](const auto& key) { return !read.contains(key); });
  return alone;
}

Workflow evaluation_beside_training(const Workflow& workflow) {
  Workflow alone = evaluation_of(workflow);
  for (Role& role : alone.roles)
    role.changes_elsewhere = workflow.role(role.name).changes();
  return alone;
}

ExecutionPlan place_evaluation(ExecutionPlan plan, const Workflow& workflow) {
  for (const auto& call : workflow.calls) {
    if (!call.evaluates || plan.calls.contains(call.name))
      continue;
    const Call* model = nullptr;
    for (const auto& other : workflow.calls)
      if (!call.role.empty() && other.role == call.role && !other.evaluates
          && (model == nullptr || other.kind == CallKind::train))
        model = &other;
    Placement placement;
    if (model != nullptr)
      placement = plan.calls.at(model->name);
    placement.chunks = 1;
    placement.slices = 1;
    placement.responses = 0;
    plan.calls[call.name] = std::move(placement);
  }
  return plan;
}

} // namespace troupe::plans
