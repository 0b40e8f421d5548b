#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "plans/check/plan_limits.hpp"
#include "plans/workflow/second_roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace troupe::plans {

namespace internal {

std::string why_no_chunks(const CheckContext& context, const Call& call,
                          const Placement& placement) {
  const auto chunks = placement.chunks;
  if (chunks == 1)
    return "";
  const auto got = std::to_string(chunks);
  if (call.kind == CallKind::train)
    return expectation("1, for a training joins all chunks", got, "1");
  if (call.kind == CallKind::function && call.scope == Scope::batch)
    return expectation(
      fmt::format("1, for {} wants the whole batch", call.name), got, "1");
  const auto& sizes = context.sizes;
  const auto groups = sizes.samples_per_step / std::max(1u, sizes.group_size);
  if (chunks < 1 || static_cast<std::uint32_t>(chunks) > groups)
    return expectation(fmt::format("1 to {}, the rows of a step", groups), got,
                       chunks < 1 ? "1" : std::to_string(groups));
  return "";
}

namespace {

/// Returns why a call cannot be in slices, however many; empty: it can.
std::string why_never_in_slices(const CheckContext& context, const Call& call,
                                const Placement& placement) {
  if (call.kind != CallKind::generate)
    return fmt::format("{} generates nothing", call.name);
  if (call.by.user_actor)
    return fmt::format("an actor leads the conversations of {}, turn by turn",
                       call.name);
  if (!context.workflow.role(call.role).trained)
    return fmt::format("{} is never trained, so slices gain no newer weights",
                       call.role);
  if (call.rows.rounds > 1)
    return "rounds of dynamic sampling choose after whole responses";
  if (placement.chunks > 1)
    return "a call is in chunks or in slices";
  const auto memory = context.plan.roles.find(call.role);
  if (memory != context.plan.roles.end() && memory->second.offload_weights)
    return fmt::format("weights of {} leave the device between calls",
                       call.role);
  return "";
}

} // namespace

std::string why_no_slices(const CheckContext& context, const Call& call,
                          const Placement& placement) {
  const auto slices = placement.slices;
  if (slices == 1)
    return "";
  const auto got = std::to_string(slices);
  if (const auto why = why_never_in_slices(context, call, placement);
      !why.empty())
    return expectation("1, for " + why, got, "1");
  const auto most_new = context.sizes.max_new_tokens > 0
                          ? context.sizes.max_new_tokens
                          : std::numeric_limits<std::int64_t>::max();
  const auto lag = std::min(context.plan.lag_of(call.name), max_plan_lag);
  const auto most_lagged = std::int64_t{max_plan_lag - lag} + 1;
  const auto most = std::min(most_new, most_lagged);
  if (slices < 1 || slices > most)
    return expectation(
      most == most_new
        ? fmt::format("1 to {}, the new tokens of a response", most)
        : fmt::format("1 to {}, for the first of more slices would lag more "
                      "than {} steps",
                      most, max_plan_lag),
      got, std::to_string(slices < 1 ? 1 : most));
  return "";
}

std::string why_no_offload(const CheckContext& context, const std::string& role,
                           const RoleMemory& memory) {
  if (!memory.offload_weights && !memory.offload_optimizer)
    return "";
  if (memory.offload_weights && is_second_role(context.workflow, role))
    return expectation(
      fmt::format("nothing, for {} speaks in conversations of another role",
                  role),
      "weights", "leaving it out");
  const auto* found = context.workflow.find_role(role);
  if (found && !found->trained && memory.offload_optimizer)
    return expectation(
      fmt::format("weights at most, for {} is never trained", role),
      "optimizer", memory.offload_weights ? "[weights]" : "leaving it out");
  return "";
}

std::string sharding_hint(const CheckContext& context, Rank device) {
  for (const auto& call : context.workflow.calls) {
    const auto& place = context.plan.calls.at(call.name);
    const bool here
      = std::ranges::find(place.devices, device) != place.devices.end();
    if (call.kind != CallKind::train || !here || place.strategy.dp == 1
        || place.strategy.zero == Zero::z3)
      continue;
    auto sharded = place.strategy;
    sharded.zero = Zero::z3;
    return fmt::format("{} for {}, ", to_string(sharded), call.name);
  }
  return "";
}

} // namespace internal

CheckContext CheckContext::with_plan(const ExecutionPlan& other) const {
  return {.workflow = workflow,
          .plan = other,
          .sizes = sizes,
          .shapes = shapes,
          .dtypes = dtypes,
          .device_memory_bytes = device_memory_bytes,
          .host_memory_bytes = host_memory_bytes,
          .nodes = nodes,
          .corrects_for_lag = corrects_for_lag,
          .evaluation = evaluation,
          .servers = servers,
          .balanced_roles = balanced_roles};
}

std::uint64_t CheckContext::memory_of(Rank device) const {
  const auto node = plan.cluster.node_of(device);
  const auto bytes = node < nodes.size() ? nodes[node].device_bytes
                                         : device_memory_bytes.value_or(0);
  return bytes > 0 ? bytes : std::numeric_limits<std::uint64_t>::max();
}

std::uint64_t CheckContext::host_memory_of(std::uint32_t node) const {
  const auto bytes = node < nodes.size() ? nodes[node].host_bytes
                                         : host_memory_bytes.value_or(0);
  return bytes > 0 ? bytes : std::numeric_limits<std::uint64_t>::max();
}

std::string CheckContext::kind_of(Rank device) const {
  const auto node = plan.cluster.node_of(device);
  return node < nodes.size() ? nodes[node].kind : "";
}

DType product_dtype(const Settings& settings, const std::string& role) {
  const auto model = settings.models.find(role);
  const auto word
    = model == settings.models.end() ? "auto" : model->second.dtype;
  const bool is_gpu = settings.cluster.device == "gpu";
  return word == "bf16" || (word == "auto" && is_gpu) ? DType::bf16
                                                      : DType::f32;
}

namespace {

/// Returns where tokens are drawn, as models/generate/device_draw.hpp decides.
DrawPlace draw_place(const Settings& settings) {
  const auto& rollout = settings.rollout;
  const bool reads_tokens
    = rollout.repetition_penalty != 1.0 || rollout.min_new_tokens > 0;
  return reads_tokens || settings.algorithm.loss.sampling_mask
           ? DrawPlace::host
           : DrawPlace::device;
}

} // namespace

CheckContext make_check_context(const Settings& settings,
                                const Workflow& workflow,
                                const ExecutionPlan& plan,
                                std::uint64_t device_bytes) {
  CheckContext context{.workflow = workflow, .plan = plan};
  const auto usable = usable_bytes(settings, device_bytes);
  if (usable > 0)
    context.device_memory_bytes = usable;
  for (const auto& role : workflow.roles)
    context.dtypes[role.name] = product_dtype(settings, role.name);
  auto& sizes = context.sizes;
  const auto positive = [](int number) {
    return static_cast<std::uint32_t>(std::max(number, 1));
  };
  sizes.samples_per_step = positive(settings.data.batch_size);
  sizes.max_sequence_tokens = settings.data.max_tokens;
  if (workflow.samples_are_prompts) {
    sizes.group_size = positive(settings.rollout.n);
    sizes.samples_per_step *= sizes.group_size;
    if (std::ranges::find(workflow.calls, CallKind::train, &Call::kind)
        != workflow.calls.end())
      sizes.mini_batches = positive(settings.algorithm.mini_batches);
    sizes.epochs = positive(settings.algorithm.epochs);
    sizes.max_sequence_tokens
      = settings.data.max_prompt_tokens + settings.rollout.max_new_tokens;
    sizes.max_new_tokens = settings.rollout.max_new_tokens;
    sizes.max_batch_tokens = settings.rollout.max_batch_tokens;
    set_response_limits(sizes, settings, usable);
  }
  sizes.move_staging_bytes = settings.cluster.move_staging_bytes();
  sizes.engine.packs_weights = true;
  if (settings.cluster.device == "gpu") {
    sizes.engine.logits_at_once = defaults::logits_at_once_on_gpu;
    sizes.engine.grouped_rows_at_once = defaults::grouped_rows_at_once_on_gpu;
    sizes.engine.storage = StorageRule::gpu;
    sizes.engine.draws = draw_place(settings);
  } else {
    // a plan does not know which CPUs will run it
    sizes.engine.packed_bf16 = DType::f32;
  }
  sizes.engine.serves = !settings.rollout.engine.is_own();
  sizes.engine.serves_on_host
    = sizes.engine.serves && settings.cluster.device != "gpu";
  sizes.engine.cache = server_cache(settings, device_bytes);
  sizes.recompute_activations = settings.algorithm.recompute == "true";
  context.evaluation
    = evaluation_in(workflow, settings, sizes.samples_per_step);
  context.corrects_for_lag = settings.algorithm.old_logprobs == "rollout"
                             || settings.algorithm.correction.kind != "none";
  if (!settings.rollout.engine.is_own())
    context.servers = settings.rollout.engine.servers.size();
  for (const auto& [role, model] : settings.models)
    if (model.optimizer.router_aux_loss_coef > 0)
      context.balanced_roles.insert(role);
  return context;
}

bool has_wrong_name(const PlanReport& report) {
  return std::ranges::any_of(report.errors, &PlanMistake::wrong_name);
}

std::string mistake_line(const PlanMistake& mistake,
                         const MistakePlace& place_of) {
  return fmt::format("{}{}: {}", place_of ? place_of(mistake.path) : "",
                     mistake.path, mistake.message);
}

void require_ok(const PlanReport& report, const MistakePlace& place_of) {
  if (report.ok())
    return;
  const auto others = report.errors.size() - 1;
  const auto text
    = mistake_line(report.errors.front(), place_of)
      + (others == 0
           ? ""
           : fmt::format(" (and {} more: see `troupe plan check`)", others));
  if (has_wrong_name(report))
    throw ConfigError(Place{}, text);
  throw PlanError(text);
}

} // namespace troupe::plans
