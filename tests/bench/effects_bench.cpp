// Which terms of the cost model earn their place: each is left out in turn, a
// plan is searched without it, and the whole model says how much slower that
// plan is than the one searched with all terms (regret). Constants stay as
// shipped; they are not fitted again. One Markdown table.
//
//   effects_bench [examples/paper] [every N-th workload, default 1]
//
// The first row searches with the whole model once more: the regret of doing
// nothing, which must be 0.
#include "plans/search/search.hpp"
#include "plans/simulate/simulator.hpp"

#include "paper_problem.hpp"
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace troupe::plans {
namespace {

namespace fs = std::filesystem;

/// A factor so large that the term no longer counts.
constexpr double beyond_measure = 1e4;

struct Effect {
  const char* name;
  std::vector<double Hardware::*> gone = {};      ///< become 0
  std::vector<double Hardware::*> unlimited = {}; ///< rates
  CostEffects effects = {};
};

const std::vector<Effect>& effects_to_leave_out() {
  using H = Hardware;
  static const std::vector<Effect> all = {
    {.name = "nothing (control)"},
    {.name = "launches of a layer", .gone = {&H::launch_layer_s}},
    {.name = "launches of tensor parallelism", .gone = {&H::launch_tp_extra_s}},
    {.name = "a stage's host time a token", .gone = {&H::stage_token_s}},
    {.name = "a call's and a step's host time",
     .gone = {&H::call_s, &H::opt_step_s}},
    {.name = "pipeline bubbles", .effects = {.bubbles = false}},
    {.name = "narrow shards", .gone = {&H::gemm_width_half}},
    {.name = "matrix rate", .unlimited = {&H::gemm_flops}},
    {.name = "attention rate", .unlimited = {&H::attn_flops}},
    {.name = "device memory bandwidth", .unlimited = {&H::mem_Bps}},
    {.name = "links inside a node", .unlimited = {&H::intra_Bps}},
    {.name = "links between nodes", .unlimited = {&H::inter_Bps}},
    {.name = "moves", .effects = {.moves = false}}};
  return all;
}

PlanProblem without(const PlanProblem& whole, const Effect& effect) {
  auto problem = whole;
  for (const auto field : effect.gone)
    problem.hardware.*field = 0;
  for (const auto field : effect.unlimited)
    problem.hardware.*field *= beyond_measure;
  return problem;
}

struct Regrets {
  std::vector<double> all = {};
  int other_plans = 0;
  void add(double regret, bool is_other) {
    all.push_back(regret);
    other_plans += is_other;
  }
  double mean() const {
    double sum = 0;
    for (const auto regret : all)
      sum += regret;
    return sum / std::max<double>(1, double(all.size()));
  }
};

std::vector<fs::path> workloads(const fs::path& folder, int every) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".yaml"
        && entry.path().stem().string().find('-') != std::string::npos)
      files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<fs::path> some;
  for (std::size_t i = 0; i < files.size();
       i += static_cast<std::size_t>(every))
    some.push_back(files[i]);
  return some;
}

int run(const fs::path& folder, int every) {
  const auto hardware = load_hardware("a100x8");
  const auto& effects = effects_to_leave_out();
  std::vector<Regrets> regrets(effects.size());
  for (const auto& file : workloads(folder, every)) {
    const auto problem = bench::paper_problem(file, hardware);
    const CostModel costs(problem);
    const auto best = search_plan(problem, costs, {}).best;
    for (std::size_t i = 0; i < effects.size(); ++i) {
      const auto less = without(problem, effects[i]);
      const CostModel blind(less, effects[i].effects);
      const auto plan = search_plan(less, blind, {}).best.plan;
      regrets[i].add(simulate_step_s(problem, costs, plan) / best.step_s - 1,
                     plan != best.plan);
    }
    std::fprintf(stderr, "%s\n", file.stem().c_str());
  }
  std::printf("| left out | mean regret | worst | other plans chosen |\n"
              "|---|---|---|---|\n");
  for (std::size_t i = 0; i < effects.size(); ++i)
    std::printf("| %s | %.1f %% | %.1f %% | %d of %zu |\n", effects[i].name,
                100 * regrets[i].mean(), 100 * std::ranges::max(regrets[i].all),
                regrets[i].other_plans, regrets[i].all.size());
  return 0;
}

} // namespace
} // namespace troupe::plans

int main(int argc, char** argv) {
  return troupe::plans::run(argc > 1 ? argv[1] : "examples/paper",
                            argc > 2 ? std::max(1, std::atoi(argv[2])) : 1);
}
