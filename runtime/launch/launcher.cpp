#include "runtime/launch/launcher.hpp"

#include "config/base/log.hpp"
#include "net/base/descriptor.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/launch/job_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace troupe::runtime {

std::uint32_t threads_per_device(std::uint32_t devices_on_host) {
  return std::max(1U, cores_of_this_job() / std::max(1U, devices_on_host));
}

std::string user_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

LaunchSpec launch_spec(const Settings& settings, const plans::Cluster& cluster,
                       const RunFolder& folder, const std::string& address,
                       const std::filesystem::path& token_file) {
  const auto& given = settings.cluster;
  return {.launcher = launcher_of(settings, cluster.nodes),
          .hosts = hosts_of(settings),
          .program = user_program(),
          .address = address,
          .token_file = given.secret.empty()
                          ? token_file
                          : std::filesystem::absolute(given.secret),
          .cluster = cluster,
          .threads = threads_per_device(cluster.devices_per_node),
          .cores = cores_of_this_job(),
          .listening = {.bind = cluster.nodes > 1 ? "auto" : given.bind,
                        .ports = given.ports},
          .environment = worker_environment(settings),
          .working_folder = std::filesystem::current_path(),
          .folder = folder};
}

Launcher::Launcher(std::function<void(WorkerId, const net::ChildExit&)> on_exit)
  : pool_([on_exit = std::move(on_exit)](const net::ChildExit& exit) {
      on_exit(WorkerId{exit.number}, exit);
    }) {}

void Launcher::start(const LaunchSpec& spec) {
  for (std::uint32_t i = 0; i < spec.cluster.num_workers(); ++i) {
    auto command = launch_command(spec, i);
    net::ChildSpec child;
    child.name = fmt::format("worker {}", i);
    child.number = i;
    child.argv = std::move(command.argv);
    child.environment = std::move(command.environment);
    net::Descriptor input;
    if (command.reads_token)
      command.input += read_file(spec.token_file);
    if (!command.input.empty()) {
      input = net::readable_text(command.input);
      child.input = input.get();
    }
    child.output_file = spec.folder.worker_log(WorkerId{i});
    log::renew_log(child.output_file);
    pool_.start(std::move(child));
  }
}

void Launcher::signal_all(int signal) {
  pool_.signal_all(signal);
}

std::vector<WorkerId> Launcher::stopped() const {
  std::vector<WorkerId> workers;
  for (const auto number : pool_.stopped())
    workers.emplace_back(number);
  return workers;
}

void Launcher::kill_all() {
  signal_all(SIGKILL);
}

void Launcher::end_all(std::chrono::milliseconds grace) {
  if (!pool_.wait_all(grace))
    pool_.signal_all(SIGKILL);
  pool_.wait_all(grace);
}

} // namespace troupe::runtime
