#include "runtime/launch/launcher.hpp"

#include "config/base/log.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/launch/job_environment.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

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

namespace {

/// Set in the numbers of children that begin as spares.
constexpr std::uint32_t spare_bit = 1U << 31;

/// Returns the worker that a child is or is to be.
WorkerId number_of(std::uint32_t child) {
  return WorkerId{child & ~spare_bit};
}

/// Writes to a spare; returns false if it is gone.
bool say(const net::Descriptor& spare, const std::string& text) {
  return ::send(spare.get(), text.data(), text.size(), MSG_NOSIGNAL)
         == static_cast<ssize_t>(text.size());
}

/// Returns what follows the input of a command.
std::string token_for(const LaunchCommand& command, const LaunchSpec& spec) {
  return command.reads_token ? read_file(spec.token_file) : "";
}

} // namespace

/// Returns the worker that a child is; nothing if it is a spare.
std::optional<WorkerId> Launcher::Watched::worker_of(std::uint32_t child) {
  const WorkerId worker = number_of(child);
  const bool waits = (child & spare_bit) != 0 && !from_spares.contains(worker);
  return waits ? std::nullopt : std::optional(worker);
}

Launcher::Launcher()
  : pool_([watched = watched_](const net::ChildExit& exit) {
      std::unique_lock lock(watched->mutex);
      const auto worker = watched->worker_of(exit.number);
      if (!worker)
        watched->ended_spares.insert(number_of(exit.number));
      const auto on_exit = watched->on_exit;
      lock.unlock();
      if (worker && on_exit)
        on_exit(*worker, exit);
    }) {}

void Launcher::start_spares(LaunchSpec spec, std::uint32_t count) {
  spec.address.clear();
  count = std::min(count, spec.cluster.num_workers());
  for (WorkerId worker{0}; worker.value < count; ++worker.value) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return; // no descriptor is left for what only saves time
    const net::Descriptor theirs(ends[1]);
    auto command = launch_command(spec, worker.value);
    Spare spare{command.argv, net::Descriptor(ends[0])};
    say(spare.input, command.input);
    start_child(spec, worker, worker.value | spare_bit, theirs.get());
    spares_[worker] = std::move(spare);
  }
}

/// Makes a spare this worker; returns false if there is none.
bool Launcher::use_spare(const LaunchSpec& spec, WorkerId worker) {
  auto waiting = spec;
  waiting.address.clear();
  auto found = spares_.extract(worker); // one of no use ends with its input
  const auto command = launch_command(waiting, worker.value);
  if (found.empty() || found.mapped().argv != command.argv)
    return false;
  const std::lock_guard lock(watched_->mutex);
  if (watched_->ended_spares.contains(worker)
      || !say(found.mapped().input,
              words_for_spare(spec, worker.value) + token_for(command, spec)))
    return false;
  watched_->from_spares.insert(worker);
  return true;
}

void Launcher::start(const LaunchSpec& spec, OnExit on_exit) {
  {
    const std::lock_guard lock(watched_->mutex);
    watched_->on_exit = std::move(on_exit);
  }
  for (WorkerId worker{0}; worker.value < spec.cluster.num_workers();
       ++worker.value) {
    if (use_spare(spec, worker))
      continue; // it writes to the log already
    log::renew_log(spec.folder.worker_log(worker));
    const auto command = launch_command(spec, worker.value);
    const auto text = command.input + token_for(command, spec);
    const auto input
      = text.empty() ? net::Descriptor() : net::readable_text(text);
    start_child(spec, worker, worker.value, input.get());
  }
  spares_.clear(); // those of a larger plan end with their input
}

void Launcher::start_child(const LaunchSpec& spec, WorkerId worker,
                           std::uint32_t child_number, int input) {
  auto command = launch_command(spec, worker.value);
  net::ChildSpec child;
  child.name = fmt::format("worker {}", worker.value);
  child.number = child_number;
  child.argv = std::move(command.argv);
  child.environment = std::move(command.environment);
  child.input = input;
  child.output_file = spec.folder.worker_log(worker);
  pool_.start(std::move(child));
}

void Launcher::signal_all(int signal) {
  pool_.signal_all(signal);
}

std::vector<WorkerId> Launcher::stopped() const {
  std::vector<WorkerId> workers;
  const std::lock_guard lock(watched_->mutex);
  for (const auto number : pool_.stopped())
    if (const auto worker = watched_->worker_of(number))
      workers.push_back(*worker);
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
