#include "plans/simulate/simulator.hpp"
#include "runtime/commands/control_fit.hpp"
#include "runtime/planner/phase_names.hpp"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

using enum ControlLayout;
using plans::CallKind;
using plans::ProfileOp;

ModelShape shape_of(bool scalar_head) {
  ModelShape shape{.family = "llama",
                   .vocab_size = 512,
                   .hidden_size = 256,
                   .num_layers = 4,
                   .num_heads = 8,
                   .num_kv_heads = 4,
                   .head_dim = 32,
                   .intermediate_size = 768};
  shape.scalar_head = scalar_head;
  return shape;
}

/// Work that grows with tokens, `times` as long as the truth.
void add_work(std::vector<plans::ProfileEntry>& entries, ProfileOp op,
              std::uint64_t parameters, double times) {
  for (const std::uint32_t tp : {1U, 2U})
    for (const double tokens : {1.0, 32.0, 2048.0})
      entries.push_back({.op = op,
                         .parameters = parameters,
                         .tp = tp,
                         .tokens = tokens,
                         .median_s = times * (0.001 + 1e-4 * tokens / tp)});
}

plans::ProfileTable table_of(const plans::PlanProblem& problem, double times) {
  std::vector<plans::ProfileEntry> entries;
  for (const auto op : {ProfileOp::forward, ProfileOp::train,
                        ProfileOp::prefill, ProfileOp::decode})
    for (const auto& role : {"actor", "critic"})
      add_work(entries, op, num_parameters(problem.shapes.at(role)), times);
  return plans::ProfileTable(std::move(entries));
}

/// PPO with small models on two devices of one node.
plans::PlanProblem true_problem() {
  plans::PlanProblem problem;
  Settings settings;
  settings.workflow = "ppo";
  problem.workflow = plans::make_workflow(settings);
  problem.cluster = {.nodes = 1, .devices_per_node = 2};
  for (const auto& role : problem.workflow.roles)
    problem.shapes[role.name] = shape_of(role.scalar_head);
  problem.sizes = {.samples_per_step = 32,
                   .mini_batches = 4,
                   .max_sequence_tokens = 64,
                   .micro_batch_tokens = 1 << 16};
  problem.lengths = plans::Lengths(32, 32, 32);
  problem.hardware = plans::load_hardware("laptop");
  problem.hardware.call_s = 0.004;
  problem.hardware.call_device_s = 0.0005;
  problem.hardware.move_s = 0.004 + 2 * 0.0005; // as a call on both devices
  problem.hardware.sum_Bps = problem.hardware.intra_Bps / 4;
  problem.hardware.move_Bps = problem.hardware.intra_Bps / 8;
  problem.hardware.gather_Bps = problem.hardware.zero_Bps / 2;
  problem.profile = table_of(problem, 1);
  return problem;
}

/// Measurements of a run on a machine that is exactly `problem`.
PlanCosts run_of(const plans::PlanProblem& problem, ControlLayout layout) {
  const auto story = plans::simulate(problem, plans::CostModel(problem),
                                     control_plan(problem, layout));
  PlanCosts run{.prompt_tokens = problem.lengths.prompt(),
                .response_tokens = problem.lengths.mean(),
                .longest_response_tokens = problem.lengths.mean()};
  double tasks = 0;
  for (const auto& call : problem.workflow.calls)
    if (call.kind != CallKind::function) {
      const auto seconds = story.durations_s[story.graph.index_of(call.name)];
      run.phases_s[phase_of(problem.workflow, call.name)] += seconds;
      run.step_s += seconds;
      ++tasks;
    }
  const double devices = problem.cluster.num_devices();
  const double used = layout == on_one_device ? 1 : devices;
  const auto control_s
    = problem.hardware.call_s + used * problem.hardware.call_device_s;
  const auto idle_of_used = tasks * control_s / run.step_s;
  run.idle_share = 1 - (1 - idle_of_used) * used / devices;
  for (std::size_t i = 0; i < story.graph.tasks.size(); ++i)
    if (story.graph.tasks[i].kind == plans::TaskKind::move)
      run.phases_s["timing_s/move"] += story.durations_s[i];
  return run;
}

/// A profile without any number that runs measure.
MachineProfile before_runs(const plans::PlanProblem& truth) {
  MachineProfile profile{.hardware = plans::load_hardware("laptop"),
                         .table = table_of(truth, 1 / 1.25)};
  profile.hardware.devices_per_node = truth.hardware.devices_per_node;
  profile.hardware.crowded_share = truth.hardware.crowded_share;
  return profile;
}

double seconds_of(const plans::ProfileTable& table,
                  const plans::PlanProblem& problem, ProfileOp op) {
  return table.seconds(op, num_parameters(problem.shapes.at("actor")), 1, 256)
    .value();
}

constexpr auto all_layouts
  = {data_parallel, tensor_parallel, trained_apart, sharded, on_one_device};

/// Fitting to runs of all layouts restores all numbers.
void expect_fitted(const plans::PlanProblem& truth) {
  auto profile = before_runs(truth);
  ControlRuns runs;
  for (const auto layout : all_layouts) {
    ASSERT_TRUE(is_possible(truth, layout));
    runs[layout] = run_of(truth, layout);
  }
  fit_profile(profile, truth, runs);
  const auto& hardware = profile.hardware;
  const auto near
    = [](double found, double sought) { EXPECT_NEAR(found / sought, 1, 0.02); };
  near(hardware.call_s, 0.004);
  near(hardware.call_device_s, 0.0005);
  near(hardware.sum_Bps, truth.hardware.sum_Bps);
  near(hardware.move_Bps, truth.hardware.move_Bps);
  near(hardware.gather_Bps, truth.hardware.gather_Bps);
  EXPECT_EQ(hardware.zero_Bps, truth.hardware.zero_Bps);
  for (const auto op :
       {ProfileOp::forward, ProfileOp::train, ProfileOp::decode})
    near(seconds_of(profile.table, truth, op),
         seconds_of(truth.profile, truth, op));
  EXPECT_EQ(hardware.sources.count("links.sum_Bps"), 1u);
  EXPECT_EQ(hardware.sources.count("links.move_Bps"), 1u);
}

TEST(ControlFit, LayoutsSeparateWorkSumsGathersMovesAndTasks) {
  expect_fitted(true_problem());
}

TEST(ControlFit, FittedNumbersAreKept) {
  const auto truth = true_problem();
  ControlRuns runs;
  for (const auto layout : all_layouts)
    runs[layout] = run_of(truth, layout);
  auto profile = before_runs(truth);
  fit_profile(profile, truth, runs);
  const auto once = profile;
  fit_profile(profile, truth, runs);
  for (const auto& field : plans::hardware_fields())
    EXPECT_DOUBLE_EQ(profile.hardware.*field.value, once.hardware.*field.value)
      << field.name;
  EXPECT_EQ(profile.hardware.sources, once.hardware.sources);
  for (const auto op :
       {ProfileOp::forward, ProfileOp::train, ProfileOp::decode})
    EXPECT_NEAR(seconds_of(profile.table, truth, op)
                  / seconds_of(once.table, truth, op),
                1, 1e-9);
}

TEST(ControlFit, ModelsThatTrainOnDifferentDevicesMayShareACore) {
  auto truth = true_problem();
  truth.hardware.devices_per_node = 2;
  truth.hardware.crowded_share = 0.5;
  expect_fitted(truth);
}

TEST(ControlFit, WithoutShardedTrainingGathersAreAsSums) {
  const auto truth = true_problem();
  auto profile = before_runs(truth);
  fit_profile(profile, truth,
              {{data_parallel, run_of(truth, data_parallel)},
               {trained_apart, run_of(truth, trained_apart)}});
  const auto& hardware = profile.hardware;
  EXPECT_GT(hardware.gather_Bps, 0);
  EXPECT_DOUBLE_EQ(hardware.gather_Bps / hardware.zero_Bps,
                   hardware.sum_Bps / hardware.intra_Bps);
}

TEST(ControlFit, WithoutTrainingApartSumsCountAsWork) {
  const auto truth = true_problem();
  auto profile = before_runs(truth);
  fit_profile(profile, truth, {{data_parallel, run_of(truth, data_parallel)}});
  EXPECT_EQ(profile.hardware.sum_Bps, 0);
  EXPECT_EQ(profile.hardware.move_Bps, 0);
  EXPECT_GT(seconds_of(profile.table, truth, ProfileOp::train),
            seconds_of(truth.profile, truth, ProfileOp::train));
}

TEST(ControlFit, WithoutARunOnOneDeviceAllTimeIsOfTheCall) {
  const auto truth = true_problem();
  auto profile = before_runs(truth);
  fit_profile(profile, truth, {{data_parallel, run_of(truth, data_parallel)}});
  EXPECT_EQ(profile.hardware.call_device_s, 0);
  EXPECT_NEAR(profile.hardware.call_s, 0.004 + 2 * 0.0005, 1e-9);
}

TEST(ControlFit, WithoutARunNothingIsFitted) {
  const auto truth = true_problem();
  auto profile = before_runs(truth);
  const auto table = profile.table;
  const auto call_s = profile.hardware.call_s;
  fit_profile(profile, truth, {});
  EXPECT_EQ(profile.table.entries(), table.entries());
  EXPECT_EQ(profile.hardware.call_s, call_s);
}

TEST(ControlFit, OneDeviceHasASingleLayout) {
  auto problem = true_problem();
  problem.cluster.devices_per_node = 1;
  EXPECT_TRUE(is_possible(problem, data_parallel));
  EXPECT_FALSE(is_possible(problem, tensor_parallel));
  EXPECT_FALSE(is_possible(problem, trained_apart));
  EXPECT_FALSE(is_possible(problem, sharded));
  EXPECT_FALSE(is_possible(problem, on_one_device));
}

} // namespace
} // namespace troupe::runtime
