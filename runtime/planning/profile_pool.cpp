#include "runtime/planning/profile_pool.hpp"

#include "config/base/clock.hpp"
#include "config/base/defaults.hpp"
#include "config/base/random_hex.hpp"
#include "models/gpu/gpu.hpp"
#include "models/gpu/gpu_memory.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/kernels/threads.hpp"
#include "net/base/gpus.hpp"
#include "net/collectives/nccl_collectives.hpp"
#include "net/collectives/staged_collectives.hpp"
#include "runtime/launch/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

namespace troupe::runtime {

namespace {

constexpr std::size_t least_rounds = 3;
constexpr std::size_t most_rounds = 200;

double seconds_of(const DeviceWork& work, std::uint32_t device) {
  const Stopwatch watch;
  work(device);
  return watch.seconds();
}

/// The rounds of one measurement; devices write their own time, the first one
/// reads all while the others wait.
struct Rounds {
  std::vector<double> latest_s; ///< per device
  std::vector<double> means_s;
  double spent_s = 0;
  std::atomic<bool> over = false;

  void end_round(double least_s, bool warm_up) {
    const auto mean_s = std::accumulate(latest_s.begin(), latest_s.end(), 0.0)
                        / static_cast<double>(latest_s.size());
    if (warm_up)
      return;
    means_s.push_back(mean_s);
    spent_s += mean_s;
    if (means_s.size() >= most_rounds
        || (means_s.size() >= least_rounds && spent_s >= least_s))
      over = true; // never false again: a device that failed has set it
  }
};

} // namespace

ProfilePool::ProfilePool(const plans::Cluster& cluster, double least_s,
                         PoolDevices kind)
  : cluster_(cluster),
    least_s_(least_s),
    kind_(kind),
    name_("profile-" + random_hex(8)) {
  models::set_compute_threads(
    static_cast<int>(threads_per_device(cluster.devices_per_node)));
  for (std::uint32_t i = 0; i < num_devices(); ++i)
    backend(i); // a GPU that is missing fails here, where no device waits
}

models::Backend& ProfilePool::backend(std::uint32_t device) const {
  return kind_ == PoolDevices::gpus ? models::gpu_backend(device)
                                    : models::host_backend();
}

void ProfilePool::together(std::uint32_t devices, const DeviceWork& work) {
  std::mutex mutex;
  std::exception_ptr first;
  const auto guarded = [&](std::uint32_t device) {
    try {
      backend(device).enter();
      work(device);
    } catch (const std::exception& error) {
      const std::lock_guard lock{mutex};
      if (!first)
        first = std::current_exception();
      registry_.abort_all({.code = Errc::aborted,
                           .who = fmt::format("device {}", device),
                           .what = error.what(),
                           .cause = ""});
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t device = 0; device < devices; ++device)
      threads.emplace_back(guarded, device);
  }
  if (first)
    std::rethrow_exception(first);
}

double ProfilePool::seconds(std::uint32_t devices, const DeviceWork& work) {
  Rounds rounds;
  rounds.latest_s.resize(devices);
  std::barrier turn(static_cast<std::ptrdiff_t>(devices));
  const auto all_rounds = [&](std::uint32_t device) {
    for (bool warm_up = true; !rounds.over; warm_up = false) {
      turn.arrive_and_wait();
      rounds.latest_s[device] = seconds_of(work, device);
      turn.arrive_and_wait();
      if (device == 0)
        rounds.end_round(least_s_, warm_up);
      turn.arrive_and_wait();
    }
  };
  together(devices, [&](std::uint32_t device) {
    try {
      all_rounds(device);
    } catch (const std::exception&) {
      rounds.over = true;     // for all others at the end of this round,
      turn.arrive_and_drop(); // in which no device waits for this one
      throw;
    }
  });
  auto& means_s = rounds.means_s;
  const auto quarter
    = means_s.begin() + static_cast<std::ptrdiff_t>(means_s.size() / 4);
  std::ranges::nth_element(means_s, quarter);
  return *quarter;
}

net::GroupSpec ProfilePool::group_spec(std::uint32_t device,
                                       std::uint32_t size) const {
  const auto first = device / size * size;
  net::GroupSpec spec;
  spec.name = fmt::format("{}-{}-{}", name_, groups_made_, first);
  spec.index = device - first;
  for (std::uint32_t i = 0; i < size; ++i)
    spec.members.push_back({cluster_.worker_of(Rank{first + i}), "here"});
  return spec;
}

std::shared_ptr<net::Collectives>
ProfilePool::of_gpu(std::uint32_t device,
                    std::shared_ptr<net::Collectives> host) const {
  if (kind_ != PoolDevices::gpus)
    return host;
  const auto gpus = net::find_gpus();
  const auto gpu = static_cast<int>(device % gpus.ids.size());
  const auto members = host->size();
  return net::make_nccl_collectives(
    {.group = name_,
     .host
     = net::make_staged_collectives(std::move(host), models::gpu_memory()),
     .device = gpu,
     .progress_deadline = defaults::collective_deadline,
     .offers = net::nccl_offers(members, gpus),
     .thread_stream = [gpu] { return models::gpu_stream(gpu); }});
}

std::vector<std::shared_ptr<net::Collectives>>
ProfilePool::groups_of(std::uint32_t size) {
  std::vector<std::shared_ptr<net::Collectives>> groups(num_devices());
  ++groups_made_;
  for (std::uint32_t i = 0; size > 1 && i < num_devices() / size * size; ++i)
    groups[i]
      = of_gpu(i, net::make_host_collectives(group_spec(i, size), registry_));
  return groups;
}

std::vector<std::shared_ptr<net::Channel>> ProfilePool::channels() {
  std::vector<std::shared_ptr<net::Channel>> ends(num_devices());
  ++groups_made_;
  for (std::uint32_t i = 0; i < num_devices() / 2 * 2; ++i)
    ends[i] = net::make_host_channel(group_spec(i, 2), registry_);
  return ends;
}

} // namespace troupe::runtime
