#include "runtime/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <thread>

namespace troupe::runtime {

std::uint32_t threads_per_device(std::uint32_t devices_on_host) {
  const auto cores = std::max(1U, std::thread::hardware_concurrency());
  return std::max(1U, cores / std::max(1U, devices_on_host));
}

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

Launcher::Launcher(std::function<void(WorkerId, const net::ChildExit&)> on_exit)
  : on_exit_(std::move(on_exit)),
    pool_([this](const net::ChildExit& exit) {
      std::optional<WorkerId> worker;
      {
        const std::lock_guard lock{mutex_};
        const auto found = workers_.find(exit.pid);
        if (found != workers_.end())
          worker = found->second;
      }
      if (worker)
        on_exit_(*worker, exit);
    }) {}

void Launcher::start(const LaunchSpec& spec) {
  for (std::uint32_t i = 0; i < spec.cluster.num_workers(); ++i) {
    auto command = launch_command(spec, i);
    net::ChildSpec child;
    child.name = fmt::format("worker {}", i);
    child.argv = std::move(command.argv);
    child.environment = std::move(command.environment);
    child.output_file = spec.folder.worker_log(WorkerId{i});
    const std::lock_guard lock{mutex_};
    workers_[pool_.start(std::move(child))] = WorkerId{i};
  }
}

void Launcher::kill_all() {
  pool_.signal_all(SIGKILL);
}

void Launcher::end_all(std::chrono::milliseconds grace) {
  if (!pool_.wait_all(grace))
    pool_.signal_all(SIGKILL);
  pool_.wait_all(grace);
}

} // namespace troupe::runtime
