// Tries to beat branch and bound: random PPO problems of 8 to 32
// devices, and `mcmc` and `descent` given 100 times the time that `exact` took.
// Exit code 1 if one of them found a faster plan than a search that says
// "proved".
//
//   exactness_bench [problems, default 20] [times, default 100]
#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "plans/search/search.hpp"
#include "plans/workflow/workflow.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>

namespace troupe::plans {
namespace {

using Random = std::mt19937_64;

ModelShape drawn_shape(Random& random) {
  struct Size {
    std::int64_t layers, hidden, inner, heads, kv_heads;
  };
  constexpr Size sizes[] = {{16, 2048, 5632, 32, 4},
                            {32, 4096, 11008, 32, 32},
                            {40, 5120, 13824, 40, 40},
                            {48, 8192, 22016, 64, 8}};
  const auto& size = sizes[random() % 4];
  ModelShape shape;
  shape.family = "llama";
  shape.vocab_size = 32000;
  shape.hidden_size = size.hidden;
  shape.num_layers = size.layers;
  shape.num_heads = size.heads;
  shape.num_kv_heads = size.kv_heads;
  shape.head_dim = size.hidden / size.heads;
  shape.intermediate_size = size.inner;
  return shape;
}

/// Actor and ref of one size, critic and reward of another, on a machine whose
/// constants are off by up to a factor of two.
PlanProblem drawn_problem(std::uint64_t seed) {
  Random random(seed);
  PlanProblem problem;
  Settings settings;
  settings.workflow = "ppo";
  problem.workflow = ppo_workflow(settings);
  problem.cluster = {.nodes = 1u << random() % 3, .devices_per_node = 8};
  const auto actor = drawn_shape(random), critic = drawn_shape(random);
  for (const auto& role : problem.workflow.roles) {
    auto& shape = problem.shapes[role.name];
    shape = role.scalar_head ? critic : actor;
    shape.scalar_head = role.scalar_head;
    problem.dtypes[role.name] = DType::bf16;
  }
  const double response = 128.0 * double(1 + random() % 8);
  problem.sizes
    = {.samples_per_step = 128u << random() % 3,
       .mini_batches = 4,
       .max_sequence_tokens = 128 + static_cast<std::int64_t>(response),
       .micro_batch_tokens = 32768,
       .recompute_activations = true,
       .engine = {.storage = StorageRule::published}};
  problem.lengths = Lengths(128, response, response);
  problem.hardware = load_hardware(random() % 2 == 0 ? "h100x8" : "a100x8");
  for (const auto& field : hardware_fields())
    if (field.section != std::string("device")
        || field.name != std::string("mem_bytes"))
      problem.hardware.*(field.value)
        *= 0.5 * double(4 + random() % 13) / 4; // 0.5 to 2
  return problem;
}

/// Returns nullopt where no plan fits.
std::optional<SearchResult> exact_plan(const PlanProblem& problem,
                                       const CostModel& costs) {
  try {
    return search_plan(problem, costs, {.method = SearchMethod::exact});
  } catch (const PlanError&) {
    return std::nullopt;
  }
}

/// Prints a row of the table; returns how often the exact plan was beaten.
int compare(std::uint64_t number, const PlanProblem& problem,
            const CostModel& costs, const SearchResult& exact, double times) {
  const auto* proof = exact.packed_only ? "packed" : "all";
  std::printf("| %d | %u | %.6g | %s | %.3f |", static_cast<int>(number),
              problem.cluster.num_devices(), exact.best.step_s,
              exact.proved ? proof : "none", exact.seconds);
  int beaten = 0;
  for (const auto method : {SearchMethod::mcmc, SearchMethod::descent}) {
    const auto walked = search_plan(
      problem, costs, {.method = method, .seconds = times * exact.seconds});
    const auto ratio = walked.best.step_s / exact.best.step_s;
    beaten += ratio < 1 - 1e-9;
    std::printf(" %+.2f %% |", 100 * (ratio - 1));
  }
  std::printf("\n");
  std::fflush(stdout);
  return beaten;
}

int run(std::uint64_t problems, double times) {
  std::printf(
    "| problem | devices | exact s | proof | seconds | mcmc | descent "
    "|\n|---|---|---|---|---|---|---|\n");
  int beaten = 0;
  std::uint64_t done = 0;
  for (std::uint64_t seed = 1; done < problems; ++seed) {
    const auto problem = drawn_problem(seed);
    const CostModel costs(problem);
    const auto exact = exact_plan(problem, costs);
    if (exact)
      beaten += compare(++done, problem, costs, *exact, times);
  }
  std::printf("\nexact beaten %d times\n", beaten);
  return beaten > 0 ? 1 : 0;
}

} // namespace
} // namespace troupe::plans

int main(int argc, char** argv) {
  return troupe::plans::run(
    argc > 1 ? static_cast<std::uint64_t>(std::atoi(argv[1])) : 20,
    argc > 2 ? std::atof(argv[2]) : 100);
}
