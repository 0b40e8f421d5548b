#include "runtime/commands/move_check.hpp"

#include "config/model/model_shape.hpp"
#include "runtime/base/temporary_folder.hpp"
#include "runtime/commands/random_model.hpp"
#include "runtime/planning/resolve_cluster.hpp"
#include "runtime/session/session.hpp"

#include <algorithm>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

/// Returns a shape of 7 million parameters: 30 MB per replica.
ModelShape check_shape() {
  ModelShape shape;
  shape.family = "llama";
  shape.vocab_size = 2048;
  shape.hidden_size = 512;
  shape.num_layers = 2;
  shape.num_heads = shape.num_kv_heads = 8;
  shape.head_dim = 64;
  shape.intermediate_size = 1376;
  shape.max_positions = 64;
  shape.scalar_head = true;
  return shape;
}

/// Returns a plan with two calls of one role on two halves of the devices: two
/// replicas, whose calls never run.
plans::ExecutionPlan two_halves(const plans::Workflow& workflow,
                                const MoveCheckPlan& wanted) {
  plans::ExecutionPlan plan;
  plan.cluster.devices_per_node = wanted.devices;
  plan.cluster.workers_per_node = wanted.workers;
  std::uint32_t first = 0;
  std::uint32_t end = (wanted.devices + 1) / 2;
  for (const auto& call : workflow.calls) {
    auto& placement = plan.calls[call.name];
    if (call.kind == plans::CallKind::function)
      continue;
    placement.strategy.dp = end - first;
    for (; first < end; ++first)
      placement.devices.emplace_back(first);
    end = wanted.devices;
  }
  return plan;
}

Settings check_settings(const fs::path& folder) {
  Settings settings;
  settings.workflow = "score";
  settings.run.dir = folder.string();
  settings.run.name = "run";
  settings.run.check_moves = true;
  settings.models["reward"].path = (folder / "model").string();
  settings.cluster.launcher = "local";
  settings.metrics.console = settings.metrics.jsonl = false;
  settings.trace.enabled = false;
  return settings;
}

} // namespace

MoveCheckPlan move_check_plan(const Settings& settings) {
  MoveCheckPlan plan;
  const auto& cluster = settings.cluster;
  plan.devices = static_cast<std::uint32_t>(
    std::max(2, cluster.devices_per_node.value_or(2)));
  plan.workers = static_cast<std::uint32_t>(
    cluster.workers_per_node.value_or(cluster.devices_per_node ? 1 : 2));
  plan.workers = std::min(plan.workers, plan.devices);
  return plan;
}

std::variant<actors::MoveCheckResult, Failure>
check_moves(const MoveCheckPlan& plan) {
  const auto folder = scratch_folder("troupe-doctor-");
  const auto shape = check_shape();
  write_random_model(folder.path() / "model", shape, /*tokenizer=*/{},
                     /*seed=*/1);
  PreparedRun run;
  auto& work = run.work;
  work.settings = check_settings(folder.path());
  work.workflow = plans::make_workflow(work.settings);
  work.shapes["reward"] = shape;
  work.plan = two_halves(work.workflow, plan);
  work.settings = with_cluster(work.settings, work.plan.cluster);
  run.attempt.folder = folder.path() / "run";
  run.display.quiet = true;
  actors::MoveCheckResult result;
  std::optional<Failure> failure;
  run.mode_options = MoveCheckMode{
    .at_least = plan.at_least,
    .on_moved = [&](const auto& moved) { result = moved; },
  };
  run.listeners.on_end = [&](const actors::RunEnd& end) {
    if (end.kind != actors::RunEnd::Kind::done)
      failure = end.failure;
  };
  run_session(run);
  if (failure)
    return *failure;
  return result;
}

} // namespace troupe::runtime
