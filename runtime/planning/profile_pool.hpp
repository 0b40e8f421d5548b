// The devices that a run has on this host, as threads that work at the same
// time: a device beside busy devices is slower than alone, so nothing is
// measured alone. Threads, groups and transports are those of a run: CPU
// devices of different workers share memory the way processes do, GPUs join
// over NCCL where each member has one of its own.
#pragma once

#include "net/collectives/host_collectives.hpp"
#include "plans/plan/execution_plan.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::models {
class Backend;
}

namespace troupe::runtime {

/// The kind of a pool's devices.
enum class PoolDevices : std::uint8_t { cores, gpus };

/// The work of one device of the pool.
using DeviceWork = std::function<void(std::uint32_t device)>;

class ProfilePool {
public:
  /// Creates the devices of one node of `cluster`, each with the threads that
  /// it has in a run. A measurement lasts `least_s` and some rounds.
  ProfilePool(const plans::Cluster& cluster, double least_s,
              PoolDevices kind = PoolDevices::cores);

  std::uint32_t num_devices() const {
    return cluster_.devices_per_node;
  }
  PoolDevices kind() const {
    return kind_;
  }
  /// Returns what a device computes with; its threads in the pool have entered
  /// it.
  models::Backend& backend(std::uint32_t device) const;
  /// Runs `work` on the first `devices` devices at once. The first exception
  /// ends the waits of the others and is rethrown here.
  void together(std::uint32_t devices, const DeviceWork& work);
  /// Returns the seconds of `work` on the first `devices` devices at once: the
  /// mean over the devices, the lower quartile over rounds that begin together,
  /// after a warm-up. Other programs only ever make a round longer.
  double seconds(std::uint32_t devices, const DeviceWork& work);

  /// Returns, per device, its group with its neighbours, `size` devices each;
  /// remaining devices have none.
  std::vector<std::shared_ptr<net::Collectives>> groups_of(std::uint32_t size);
  /// Returns, per device, its end of a channel of hosts to the other device of
  /// its pair.
  std::vector<std::shared_ptr<net::Channel>> channels();

private:
  net::GroupSpec group_spec(std::uint32_t device, std::uint32_t size) const;
  std::shared_ptr<net::Collectives>
  of_gpu(std::uint32_t device, std::shared_ptr<net::Collectives> host) const;

  plans::Cluster cluster_;
  double least_s_;
  PoolDevices kind_;
  std::string name_;
  std::uint32_t groups_made_ = 0;
  net::GroupRegistry registry_;
};

} // namespace troupe::runtime
