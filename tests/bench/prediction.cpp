#include "prediction.hpp"

#include "config/settings/settings.hpp"
#include "net/base/gpus.hpp"
#include "plans/cost/cost_model.hpp"
#include "plans/simulate/simulator.hpp"
#include "runtime/planner/plan_options.hpp"

#include "tests/support/temp_folder.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace troupe::bench {
namespace {

constexpr std::array known_gpus{
  KnownGpu{"H100", "h100x8", 989e12},
  KnownGpu{"H200", "h200x8", 989e12},
};

plans::PlanProblem problem_of(const KnownGpu& gpu, const Settings& settings) {
  runtime::PlanArguments arguments;
  arguments.hardware = gpu.hardware;
  return runtime::make_problem(settings, arguments);
}

} // namespace

const KnownGpu* find_known_gpu(std::string_view name) {
  const auto is_named = [&](const KnownGpu& gpu) {
    const auto at = name.find(gpu.word);
    // a GH200 is not an H200
    return at != name.npos
           && (at == 0
               || std::isalpha(static_cast<unsigned char>(name[at - 1])) == 0);
  };
  const auto* found = std::ranges::find_if(known_gpus, is_named);
  return found == known_gpus.end() ? nullptr : found;
}

const KnownGpu* known_gpu(const Options& options, std::uint32_t devices) {
  if (options.device != "gpu")
    return nullptr;
  const auto gpus = net::find_gpus();
  return gpus.names.empty() || gpus.names.size() < devices
           ? nullptr
           : find_known_gpu(gpus.names.front());
}

double predicted_call_s(const KnownGpu& gpu, const Options& options,
                        const ModelShape& shape, const LoneCall& call) {
  const support::TempFolder model;
  support::write_text(model / "config.json", print_hf_config(shape));
  const auto peers = call.tensor_peers;
  auto words = call.settings;
  words.insert(words.end(), {"run.steps=1", "data.train=none.jsonl"});
  words.push_back("models.actor.path=" + model.path().string());
  words.push_back("models.actor.dtype=" + options.dtype);
  words.push_back("cluster.devices_per_node=" + std::to_string(peers));
  auto problem = problem_of(gpu, load_settings({}, words));
  problem.hardware.call_s = 0;
  problem.hardware.call_device_s = 0;
  problem.sizes.max_sequences = 0; // a benchmark has slots for all
  problem.sizes.kv_cache_bytes = 0;
  plans::Placement place{.strategy = {.tp = peers}};
  for (std::uint32_t device = 0; device < peers; ++device)
    place.devices.emplace_back(device);
  const auto found
    = std::ranges::find(problem.workflow.calls, call.kind, &plans::Call::kind);
  return plans::CostModel(problem).call_s(*found, place);
}

double predicted_step_s(const KnownGpu& gpu,
                        const std::vector<std::string>& settings) {
  const auto all = load_settings({}, settings);
  const auto problem = problem_of(gpu, all);
  const auto plan = runtime::named_plan(all, problem);
  TROUPE_CHECK(plan.has_value(), "a benchmark names its plan");
  const auto costs = plans::CostModel(problem).with_planned_moves();
  return plans::simulate_step_s(problem, costs, plan->plan);
}

} // namespace troupe::bench
