// Fits the constants of the shipped a100x8 to the published cells in
// examples/paper/measured.json, and says how far predictions are off: on the
// rows of the fit, and on each model size when its rows were left out.
//
//   fit_bench [examples/paper]
//
// The column of OpenRLHF takes no part in that: with the others' constants, two
// of its own (slower passes, rollouts in rounds) are fitted to it afterwards.
//
// Published numbers of searched plans belong to plans that are not published,
// so a pool of plans per row stands for them: the fit takes the fastest of the
// pool, a new search adds to it, and so on (fitting to one plan at a time
// oscillates). A weak pull towards the start values keeps constants that no row
// can see where the estimator notes put them.
#include "plans/presets/presets.hpp"
#include "plans/search/search.hpp"
#include "plans/simulate/published_plans.hpp"
#include "plans/simulate/simulator.hpp"

#include "paper_problem.hpp"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

namespace troupe::plans {
namespace {

namespace fs = std::filesystem;

struct FitConstant {
  const char* path;
  double Hardware::*value;
  double spread; ///< of the logarithm, below which the pull has no effect
};

const std::vector<FitConstant>& fit_constants() {
  using H = Hardware;
  static const std::vector<FitConstant> all
    = {{"device.gemm_flops", &H::gemm_flops, 0.2},
       {"device.gemm_width_half", &H::gemm_width_half, 0.3},
       {"device.attn_flops", &H::attn_flops, 0.3},
       {"device.mem_Bps", &H::mem_Bps, 0.15},
       {"host.launch_layer_s", &H::launch_layer_s, 0.3},
       {"host.launch_tp_extra_s", &H::launch_tp_extra_s, 0.3},
       {"host.stage_token_s", &H::stage_token_s, 0.3},
       {"host.call_s", &H::call_s, 0.4},
       {"host.opt_step_s", &H::opt_step_s, 0.5},
       {"host.move_s", &H::move_s, 0.5},
       {"links.intra_Bps", &H::intra_Bps, 0.2},
       {"links.inter_Bps", &H::inter_Bps, 0.4},
       {"links.zero_Bps", &H::zero_Bps, 0.6},
       {"engines.dschat_compute", &H::dschat_compute, 0.6},
       {"engines.dschat_decode_layer_s", &H::dschat_decode_layer_s, 0.6}};
  return all;
}

const std::vector<FitConstant>& openrlhf_constants() {
  using H = Hardware;
  static const std::vector<FitConstant> all
    = {{"engines.openrlhf_compute", &H::openrlhf_compute, 0.6},
       {"engines.openrlhf_rounds", &H::openrlhf_rounds, 0.6}};
  return all;
}

/// A plan with everything computed that does not depend on constants.
struct PooledPlan {
  ExecutionPlan plan;
  Replicas replicas;
  StepGraph graph;
  std::vector<MoveBytes> moved;

  double step_s(const PlanProblem& problem, const CostModel& costs) const {
    std::vector<double> durations;
    for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
      const auto& task = graph.tasks[i];
      durations.push_back(task.kind == TaskKind::move
                            ? gathered_s(task, moved[i], problem)
                            : predict_task_s(problem, costs, plan, task));
    }
    constexpr std::uint32_t steps = 2; // without lag every step is alike
    return steady_step_s(graph, run_schedule(graph, {durations}, steps), steps);
  }

private:
  double gathered_s(const TaskTemplate& task, const MoveBytes& bytes,
                    const PlanProblem& problem) const {
    auto seconds = move_seconds(bytes, problem.hardware);
    if (replicas[*task.source].strategy.zero != Zero::z3)
      return seconds;
    const auto& to = replicas[*task.target].strategy;
    const auto share
      = double(weight_bytes(problem.shapes.at(task.role), DType::bf16))
        / (double(to.tp) * to.pp);
    return std::max(seconds, problem.hardware.move_s
                               + share / problem.hardware.zero_Bps);
  }
};

struct FitRow {
  std::string id;
  PlanProblem problem;
  std::unique_ptr<CostModel> costs, dschat_costs, openrlhf_costs;
  PooledPlan heuristic, dschat;
  std::vector<PooledPlan> pool, openrlhf;
  double heuristic_s = 0, searched_s = 0, dschat_s = 0; ///< measured; 0: none
  double openrlhf_s = 0;

  PooledPlan pooled(const ExecutionPlan& plan) const {
    PooledPlan one{.plan = with_rooms(problem, plan),
                   .replicas = {},
                   .graph = {},
                   .moved = {}};
    one.replicas = replicas_of(problem.workflow, one.plan);
    one.graph = with_device_classes(
      make_step_graph(problem.workflow, one.plan, one.replicas));
    for (const auto& task : one.graph.tasks) {
      MoveBytes bytes;
      if (task.kind == TaskKind::move) {
        const auto& from = one.replicas[*task.source];
        const auto& to = one.replicas[*task.target];
        bytes = costs->move_bytes_of(
          task.role, {.devices = from.devices, .strategy = from.strategy},
          {.devices = to.devices, .strategy = to.strategy});
      }
      one.moved.push_back(bytes);
    }
    return one;
  }
  double best_s(const std::vector<PooledPlan>& plans,
                const CostModel& with) const {
    auto best = 1e300;
    for (const auto& plan : plans)
      best = std::min(best, plan.step_s(problem, with));
    return best;
  }
  double pool_s() const {
    return best_s(pool, *costs);
  }
  void add_to_pool(const ExecutionPlan& plan) {
    const auto with_its_rooms = with_rooms(problem, plan);
    if (std::ranges::find(pool, with_its_rooms, &PooledPlan::plan)
        == pool.end())
      pool.push_back(pooled(plan));
  }
  void search_more() {
    const auto found = search_plan(problem, *costs, {});
    add_to_pool(found.best.plan);
    if (!found.next.empty())
      add_to_pool(found.next.front().plan);
  }
};

std::unique_ptr<FitRow> make_row(const fs::path& file,
                                 const nlohmann::json& measured,
                                 const Hardware& hardware) {
  auto row = std::make_unique<FitRow>();
  row->id = file.stem().string();
  row->problem = bench::paper_problem(file, hardware);
  const auto& problem = row->problem;
  row->costs = std::make_unique<CostModel>(problem);
  row->dschat_costs
    = std::make_unique<CostModel>(problem, published_effects("deepspeed_chat"));
  row->openrlhf_costs
    = std::make_unique<CostModel>(problem, published_effects("openrlhf"));
  const PresetFacts facts{.shapes = problem.shapes,
                          .device_memory_bytes = problem.device_memory_bytes()};
  row->heuristic
    = row->pooled(preset("megatron", problem.workflow, problem.cluster, facts));
  row->dschat = row->pooled(
    preset("deepspeed_chat", problem.workflow, problem.cluster, facts));
  row->heuristic_s = measured.value("megatron", 0.0);
  row->searched_s = measured.value("search", 0.0);
  row->dschat_s = measured.value("deepspeed_chat", 0.0);
  for (auto& plan : published_plans("openrlhf", problem))
    row->openrlhf.push_back(row->pooled(std::move(plan)));
  row->openrlhf_s = measured.value("openrlhf", 0.0);
  return row;
}

using Rows = std::vector<std::unique_ptr<FitRow>>;

void use(const Rows& rows, const Hardware& hardware) {
  for (const auto& row : rows)
    row->problem.hardware = hardware;
}

struct Errors {
  double heuristic = 0, searched = 0, dschat = 0, ratio = 0, openrlhf = 0;
  double squares = 0; ///< of the logarithms, without OpenRLHF's
  double openrlhf_squares = 0;
  int rows = 0, dschat_rows = 0, openrlhf_rows = 0;
};

Errors errors_of(const Rows& rows) {
  Errors sum;
  for (const auto& row : rows) {
    const auto heuristic
      = row->heuristic.step_s(row->problem, *row->costs) / row->heuristic_s;
    const auto searched = row->pool_s() / row->searched_s;
    sum.heuristic += std::abs(heuristic - 1);
    sum.searched += std::abs(searched - 1);
    sum.ratio += std::abs(heuristic / searched - 1);
    sum.squares
      += std::pow(std::log(heuristic), 2) + std::pow(std::log(searched), 2);
    ++sum.rows;
    if (row->openrlhf_s > 0) {
      const auto openrlhf
        = row->best_s(row->openrlhf, *row->openrlhf_costs) / row->openrlhf_s;
      sum.openrlhf += std::abs(openrlhf - 1);
      sum.openrlhf_squares += std::pow(std::log(openrlhf), 2);
      ++sum.openrlhf_rows;
    }
    if (row->dschat_s <= 0)
      continue;
    const auto dschat
      = row->dschat.step_s(row->problem, *row->dschat_costs) / row->dschat_s;
    sum.dschat += std::abs(dschat - 1);
    sum.squares += 0.5 * std::pow(std::log(dschat), 2);
    ++sum.dschat_rows;
  }
  return sum;
}

/// Constants that are fitted together, and the rows that they are fitted to.
struct FitStage {
  const std::vector<FitConstant>& constants;
  double Errors::*squares;
  const Rows& rows;
  const Hardware& start;
};

double fit_loss(const FitStage& stage, const Hardware& hardware) {
  use(stage.rows, hardware);
  auto loss = errors_of(stage.rows).*stage.squares;
  for (const auto& constant : stage.constants) {
    const auto off
      = std::log(hardware.*(constant.value) / stage.start.*(constant.value));
    loss += 0.01 * std::pow(off / constant.spread, 2);
  }
  return loss;
}

/// Moves a constant a step up and down; keeps what helps.
bool try_steps(const FitStage& stage, const FitConstant& constant, double step,
               Hardware& hardware, double& best) {
  bool improved = false;
  for (const auto factor : {1 + step, 1 / (1 + step)}) {
    auto next = hardware;
    next.*(constant.value) *= factor;
    const auto loss = fit_loss(stage, next);
    if (loss >= best * (1 - 1e-4))
      continue;
    best = loss;
    hardware = next;
    improved = true;
  }
  return improved;
}

/// Moves each constant a step up or down while that helps, then by smaller
/// steps.
Hardware fit(const FitStage& stage, Hardware hardware) {
  auto best = fit_loss(stage, hardware);
  for (double step = 0.2; step > 0.01; step *= 0.6)
    for (bool improved = true; improved;) {
      improved = false;
      for (const auto& constant : stage.constants)
        improved |= try_steps(stage, constant, step, hardware, best);
    }
  use(stage.rows, hardware);
  return hardware;
}

Hardware fit_with_pools(const Rows& rows, const Hardware& start) {
  constexpr int rounds = 4;
  auto hardware = start;
  for (int round = 0; round < rounds; ++round) {
    use(rows, hardware);
    for (const auto& row : rows)
      row->search_more();
    hardware = fit({fit_constants(), &Errors::squares, rows, start}, hardware);
  }
  for (const auto& row : rows)
    row->search_more();
  return fit({openrlhf_constants(), &Errors::openrlhf_squares, rows, start},
             hardware);
}

Rows load_rows(const fs::path& folder, const Hardware& hardware,
               const std::string& only, const std::string& without) {
  std::ifstream in(folder / "measured.json");
  const auto measured = nlohmann::json::parse(in)["seconds"];
  Rows rows;
  for (const auto& [id, seconds] : measured.items()) {
    const bool wanted
      = (only.empty() || id.find(only) != std::string::npos)
        && (without.empty() || id.find(without) == std::string::npos);
    if (wanted)
      rows.push_back(make_row(folder / (id + ".yaml"), seconds, hardware));
  }
  return rows;
}

std::string errors_text(const Errors& errors) {
  const auto percent
    = [](double sum, int count) { return 100 * sum / std::max(1, count); };
  return fmt::format(
    "mean absolute errors over {} rows: heuristic {:.1f} %, "
    "searched {:.1f} %, ratio {:.1f} %, DeepSpeed-Chat {:.1f} "
    "%, OpenRLHF {:.1f} % of {} rows",
    errors.rows, percent(errors.heuristic, errors.rows),
    percent(errors.searched, errors.rows), percent(errors.ratio, errors.rows),
    percent(errors.dschat, errors.dschat_rows),
    percent(errors.openrlhf, errors.openrlhf_rows), errors.openrlhf_rows);
}

/// Rows whose ids have `size`, predicted by a fit without them.
void leave_out(const fs::path& folder, const Hardware& start,
               const std::string& size) {
  const auto kept = load_rows(folder, start, "", size);
  const auto hardware = fit_with_pools(kept, start);
  const auto left = load_rows(folder, start, size, "");
  use(left, hardware);
  for (const auto& row : left)
    row->search_more();
  std::printf("without rows of %s, predicting them: %s\n", size.c_str(),
              errors_text(errors_of(left)).c_str());
}

int run(const fs::path& folder) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto start = load_hardware("a100x8");
  const auto rows = load_rows(folder, start, "", "");
  use(rows, start);
  for (const auto& row : rows)
    row->search_more();
  std::printf("as shipped: %s\n", errors_text(errors_of(rows)).c_str());
  const auto hardware = fit_with_pools(rows, start);
  std::printf("fitted: %s\n", errors_text(errors_of(rows)).c_str());
  for (const auto& row : rows)
    std::printf(
      "%-24s heuristic %6.1f of %6.1f  searched %6.1f of %6.1f  "
      "DeepSpeed-Chat %6.1f of %6.1f  OpenRLHF %6.1f of %6.1f\n",
      row->id.c_str(), row->heuristic.step_s(row->problem, *row->costs),
      row->heuristic_s, row->pool_s(), row->searched_s,
      row->dschat.step_s(row->problem, *row->dschat_costs), row->dschat_s,
      row->best_s(row->openrlhf, *row->openrlhf_costs), row->openrlhf_s);
  std::printf("%s", print(hardware).c_str());
  leave_out(folder, start, "34");
  leave_out(folder, start, "a7c7");
  return 0;
}

} // namespace
} // namespace troupe::plans

int main(int argc, char** argv) {
  return troupe::plans::run(argc > 1 ? argv[1] : "examples/paper");
}
