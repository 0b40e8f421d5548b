#include "actors/worker/shard_memory.hpp"

#include "actors/protocol/resident_memory.hpp"
#include "models/gpu/gpu.hpp"
#include "models/gpu/gpu_budget.hpp"
#include "net/base/gpus.hpp"
#include "plans/memory/response_room.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

/// The GPU of a shard.
struct ShardGpu {
  int number = 0;
  std::uint64_t sharers = 0; ///< devices of this process; 0: it is on no GPU
};

ShardGpu shard_gpu(const Shard& shard) {
  const WorkerContext& worker = *shard.worker;
  const auto& cluster = worker.run.settings.cluster;
  if (cluster.device != "gpu")
    return {};
  // asking takes a driver milliseconds, and the answer never changes
  static const auto gpus
    = static_cast<std::uint32_t>(net::find_gpus().names.size());
  const auto devices
    = static_cast<std::uint32_t>(cluster.devices_per_node.value_or(1));
  const auto gpu_of_rank
    = [&](Rank rank) { return rank.value % devices % std::max(1U, gpus); };
  const auto own = gpu_of_rank(shard.rank);
  const auto sharers
    = std::ranges::count_if(worker.threads.devices, [&](const auto& device) {
        return gpu_of_rank(device.first) == own;
      });
  return {static_cast<int>(own), static_cast<std::uint64_t>(sharers)};
}

} // namespace

std::uint64_t allocator_bytes(const Settings& settings,
                              std::uint64_t device_bytes) {
  const auto usable = plans::usable_bytes(settings, device_bytes);
  return usable + (device_bytes - usable) / 2;
}

models::Backend& gpu_backend_of(const Shard& shard) {
  const auto& cluster = shard.worker->run.settings.cluster;
  return models::gpu_backend(
    shard.rank.value
    % static_cast<std::uint32_t>(cluster.devices_per_node.value_or(1)));
}

void limit_memory(const Shard& shard) {
  const RunDescription& run = shard.worker->run;
  const auto gpu = shard_gpu(shard);
  if (gpu.sharers > 0 && run.device_bytes > 0)
    models::limit_gpu_memory(
      gpu.number,
      gpu.sharers * allocator_bytes(run.settings, run.device_bytes));
}

void begin_peak(const Shard& shard) {
  shard.device->memory().begin_peak();
  const auto gpu = shard_gpu(shard);
  if (gpu.sharers == 1)
    models::begin_gpu_peak(gpu.number);
}

std::vector<PeakMemory> peaks_of(const Shard& shard) {
  const auto gpu = shard_gpu(shard);
  const auto bytes = gpu.sharers == 1 ? models::gpu_peak_bytes(gpu.number)
                                      : shard.device->memory().peak_bytes();
  return {{shard.rank, bytes, resident_bytes()}};
}

} // namespace troupe::actors
