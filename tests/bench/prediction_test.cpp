// Predictions beside first light's figures are what `plan simulate` prints.
#include "config/base/error.hpp"
#include "config/model/model_shape.hpp"
#include "plans/cost/cluster_file.hpp"
#include "runtime/planner/plan_options.hpp"

#include <gtest/gtest.h>

#include "iteration_settings.hpp"
#include "prediction.hpp"
#include "tests/support/temp_folder.hpp"
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::bench {
namespace {

const KnownGpu& gpu_named(const char* name) {
  const KnownGpu* gpu = find_known_gpu(name);
  TROUPE_CHECK(gpu != nullptr, "a GPU with a hardware file");
  return *gpu;
}

/// Returns what `plan simulate --json` prints for these settings on such GPUs.
nlohmann::json simulated(const KnownGpu& gpu,
                         const std::vector<std::string>& settings) {
  CLI::App app;
  runtime::CommandRun chosen;
  runtime::add_plan_commands(app, chosen, runtime::planning_host());
  std::vector<std::string> words{"simulate"};
  words.insert(words.end(), settings.begin(), settings.end());
  words.insert(words.end(), {"--hardware", gpu.hardware, "--json", "--quiet"});
  std::ranges::reverse(words); // as CLI11 takes them
  app.parse(words);
  ::testing::internal::CaptureStdout();
  chosen();
  return nlohmann::json::parse(::testing::internal::GetCapturedStdout());
}

struct IterationCase {
  const char* card;
  const char* workflow;
  const char* plan;
  int devices;
};

TEST(Prediction, OfAnIterationIsTheSimulatedStep) {
  for (const IterationCase& c :
       {IterationCase{"qwen3_0.6b", "grpo", "single", 1}, // first light's
        IterationCase{"qwen3_0.6b", "grpo", "data_parallel", 8},
        IterationCase{"tiny", "ppo", "separation", 2}}) {
    Options options;
    options.card = c.card;
    options.device = "gpu";
    options.dtype = "bf16";
    options.plan = c.plan;
    options.threads = c.devices;
    const CardFolder folder(read_card(options), c.workflow, CardModels::config);
    const auto settings = iteration_settings(options, folder, c.workflow);
    for (const char* name : {"NVIDIA H100 80GB HBM3", "NVIDIA H200"}) {
      const KnownGpu& gpu = gpu_named(name);
      EXPECT_DOUBLE_EQ(predicted_step_s(gpu, settings),
                       simulated(gpu, settings).at("step_s").get<double>())
        << c.card << " " << c.plan << " on " << name;
    }
  }
}

// A benchmark calls the engine itself: no master sends messages.
TEST(Prediction, OfALoneCallIsItsTaskWithoutMessages) {
  Options options;
  options.card = "1b";
  options.dtype = "bf16";
  const ModelShape shape = shape_of(read_card(options));
  const LoneCall train{
    .settings = {"workflow=sft", "data.batch_size=4", "data.max_tokens=2048"}};
  const support::TempFolder model;
  support::write_text(model / "config.json", print_hf_config(shape));
  auto settings = train.settings;
  settings.insert(settings.end(), {"run.steps=1", "data.train=none.jsonl",
                                   "models.actor.path=" + model.path().string(),
                                   "models.actor.dtype=bf16", "plan=single",
                                   "cluster.devices_per_node=1"});
  const KnownGpu& gpu = gpu_named("NVIDIA H200");
  const auto hardware = plans::load_cluster_hardware(gpu.hardware);
  const auto task = simulated(gpu, settings).at("tasks").at(0);
  const double task_s
    = task.at("end_s").get<double>() - task.at("start_s").get<double>();
  EXPECT_EQ(task.at("call"), "actor_train");
  EXPECT_NEAR(predicted_call_s(gpu, options, shape, train) + hardware.call_s
                + hardware.call_device_s,
              task_s, 1e-9);
  EXPECT_GT(hardware.call_s, 0);
}

} // namespace
} // namespace troupe::bench
