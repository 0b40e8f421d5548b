// The control plane: microseconds of an empty task over two worker processes,
// end to end, and the processor time of a run that waits.
#include "card_folder.hpp"
#include "control_run.hpp"
#include "troupe_run.hpp"
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>

namespace troupe::bench {
namespace {

constexpr std::uint32_t num_tasks = 1000;
constexpr int warm_up_steps = 2;

std::vector<double> microseconds_per_task(ControlRun& control, int runs,
                                          bool chained) {
  auto seconds = control.run(
    num_tasks, static_cast<std::uint32_t>(warm_up_steps + runs), chained);
  seconds.erase(seconds.begin(), seconds.begin() + warm_up_steps);
  for (double& x : seconds)
    x *= 1e6 / num_tasks;
  return seconds;
}

// Stops one of two workers of a real run in the middle of a step: the master
// and the other worker then wait for it. Returns the share of one processor
// that they use meanwhile.
double idle_share(const CardFolder& folder) {
  RunRequest request;
  request.threads = 2;
  request.run_folder = folder.root() / "runs" / "idle";
  request.settings = folder.ppo_settings();
  for (const char* word :
       {"run.name=idle", "run.steps=1000000", "cluster.nodes=1",
        "cluster.devices_per_node=2", "cluster.workers_per_node=2",
        "cluster.device=cpu", "plan=data_parallel"})
    request.settings.emplace_back(word);
  TroupeRun run(request);
  const auto metrics = request.run_folder / "metrics.jsonl";
  std::string line;
  while (run.read_line(line))
    if (std::filesystem::exists(metrics)
        && std::filesystem::file_size(metrics) > 0)
      break;
  const auto workers = children_of(run.pid());
  if (workers.size() != 2)
    throw std::runtime_error("the run to watch has not two workers: " + line);
  kill(workers.back(), SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds{1});
  constexpr double watched_s = 4; // less than until it is declared dead
  const double before = cpu_seconds(run.pid());
  std::this_thread::sleep_for(std::chrono::duration<double>{watched_s});
  const double used = cpu_seconds(run.pid()) - before;
  for (const pid_t worker : workers)
    kill(worker, SIGKILL);
  return used / watched_s;
}

} // namespace

nlohmann::json bench_control(const Options& options) {
  const CardFolder folder(read_card(options));
  nlohmann::json independent;
  nlohmann::json chained;
  double cpu_us = 0; // of master and workers together, per independent task
  {
    ControlRun control(folder, false);
    const double before = cpu_seconds(getpid());
    independent = summary(microseconds_per_task(control, options.runs, false));
    cpu_us = 1e6 * (cpu_seconds(getpid()) - before)
             / (num_tasks * (warm_up_steps + options.runs));
    chained = summary(microseconds_per_task(control, options.runs, true));
  }
  nlohmann::json encrypted;
  {
    ControlRun control(folder, true);
    encrypted = summary(microseconds_per_task(control, options.runs, true));
  }
  return {{"us_per_task", independent["median"]},
          {"us_per_task_min", independent["min"]},
          {"us_per_task_max", independent["max"]},
          {"n", options.runs},
          {"us_per_chained_task", chained},
          {"us_per_chained_task_tls", encrypted},
          {"cpu_us_per_task", cpu_us},
          {"tasks", num_tasks},
          {"workers", 2},
          {"idle_cpu_share", idle_share(folder)}};
}

} // namespace troupe::bench
