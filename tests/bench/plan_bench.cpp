// Speed of planning: simulated PPO steps per second, and seconds of whole
// searches for 8, 128 and 1,024 devices. One core, no cards: four LLaMA models.
#include "config/settings/settings.hpp"
#include "plans/presets/presets.hpp"
#include "plans/search/search.hpp"
#include "plans/simulate/simulator.hpp"

#include "bench.hpp"

#include <stdexcept>

namespace troupe::bench {
namespace {

using plans::CostModel;
using plans::PlanProblem;

ModelShape planned_shape(std::int64_t layers, std::int64_t hidden,
                         std::int64_t inner, std::int64_t heads,
                         std::int64_t kv_heads) {
  ModelShape shape;
  shape.family = "llama";
  shape.vocab_size = 32000;
  shape.hidden_size = hidden;
  shape.num_layers = layers;
  shape.num_heads = heads;
  shape.num_kv_heads = kv_heads;
  shape.head_dim = hidden / heads;
  shape.intermediate_size = inner;
  return shape;
}

PlanProblem planned_problem(const ModelShape& shape, std::uint32_t nodes,
                            std::uint32_t samples) {
  PlanProblem problem;
  Settings settings;
  settings.workflow = "ppo";
  problem.workflow = plans::ppo_workflow(settings);
  problem.cluster = {.nodes = nodes, .devices_per_node = 8};
  for (const auto& role : problem.workflow.roles) {
    problem.shapes[role.name] = shape;
    problem.shapes[role.name].scalar_head = role.scalar_head;
    problem.dtypes[role.name] = DType::bf16;
  }
  problem.sizes = {.samples_per_step = samples,
                   .mini_batches = 4,
                   .max_sequence_tokens = 1024,
                   .micro_batch_tokens = 32768,
                   .recompute_activations = true,
                   .engine = {.storage = plans::StorageRule::published}};
  problem.lengths = plans::Lengths(128, 896, 896);
  problem.hardware = plans::load_hardware("h100x8");
  return problem;
}

} // namespace

nlohmann::json bench_simulate(const Options& options) {
  constexpr std::uint32_t steps = 2000;
  const auto problem
    = planned_problem(planned_shape(32, 4096, 11008, 32, 32), 1, 512);
  const CostModel costs(problem);
  const auto plan = plans::preset("real_heuristic", problem.workflow,
                                  problem.cluster, {.shapes = problem.shapes});
  const auto replicas = plans::replicas_of(problem.workflow, plan);
  const auto graph = plans::make_step_graph(problem.workflow, plan, replicas);
  const auto times
    = plans::predict_seconds(problem, costs, plan, replicas, graph);
  std::vector<double> rates, whole_rates;
  for (int run = 0; run <= options.runs; ++run) {
    std::size_t tasks = 0;
    const auto seconds = seconds_of(options, [&] {
      tasks = plans::run_schedule(graph, times, steps).size();
    });
    const auto whole = seconds_of(options, [&] {
      for (int i = 0; i < 200; ++i)
        plans::simulate_step_s(problem, costs, plan);
    });
    if (tasks != steps * graph.tasks.size())
      throw std::runtime_error("tasks are missing");
    if (run == 0)
      continue; // warm-up
    rates.push_back(steps / seconds);
    whole_rates.push_back(200 / whole);
  }
  nlohmann::json document = {{"plans_s", summary(whole_rates)},
                             {"steps", steps},
                             {"tasks_a_step", graph.tasks.size()}};
  add_headline(document, "steps_s", rates);
  return document;
}

nlohmann::json bench_search(const Options& options) {
  struct Case {
    const char* name;
    ModelShape shape;
    std::uint32_t nodes;
    std::uint32_t samples;
  };
  const std::vector<Case> cases
    = {{"7b_8", planned_shape(32, 4096, 11008, 32, 32), 1, 128},
       {"70b_128", planned_shape(80, 8192, 28672, 64, 8), 16, 512},
       {"70b_1024", planned_shape(80, 8192, 28672, 64, 8), 128, 4096}};
  nlohmann::json document;
  for (const auto& one : cases) {
    const auto problem = planned_problem(one.shape, one.nodes, one.samples);
    std::vector<double> all;
    plans::SearchResult found;
    for (int run = 0; run < options.runs; ++run)
      all.push_back(seconds_of(options, [&] {
        const CostModel costs(problem);
        found = plans::search_plan(problem, costs,
                                   {.chunks = plans::ChunkSearch::afterwards});
      }));
    document[one.name] = {{"s_per_search", summary(all)},
                          {"step_s", found.best.step_s},
                          {"lower_bound_s", found.lower_bound_s},
                          {"proved", found.proved},
                          {"nodes", found.nodes},
                          {"evaluations", found.evaluations},
                          {"options", found.counts.kept},
                          {"history", found.history}};
    add_headline(document, "s_per_search", all); // of the last, the largest
  }
  return document;
}

} // namespace troupe::bench
