#include "device_group.hpp"

#include "models/gpu/gpu.hpp"
#include "models/kernels/backend.hpp"
#include "net/base/gpus.hpp"
#include "net/collectives/nccl_collectives.hpp"
#include "net/collectives/staged_collectives.hpp"

#include "random_engine.hpp"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::bench {

std::shared_ptr<net::Collectives> device_group(const Options& options,
                                               const net::GroupSpec& spec,
                                               net::GroupRegistry& registry) {
  auto host = net::make_host_collectives(spec, registry);
  if (options.device != "gpu")
    return host;
  const net::GpuReport gpus = net::find_gpus();
  const std::size_t index = spec.index % gpus.names.size();
  const auto gpu = static_cast<int>(index);
  return net::make_nccl_collectives(
    {.group = spec.name,
     .host = net::make_staged_collectives(
       std::move(host), *backend_of(options, spec.index).memory()),
     .device = gpu,
     .progress_deadline = spec.progress_deadline,
     .offers = net::nccl_offers(spec.members.size(), gpus),
     .thread_stream = [gpu] { return models::gpu_stream(gpu); }});
}

void together(std::uint32_t members, net::GroupRegistry& registry,
              const std::function<void(std::uint32_t)>& work) {
  std::mutex mutex;
  std::exception_ptr first;
  const auto guarded = [&](std::uint32_t member) {
    try {
      work(member);
    } catch (const std::exception& error) {
      {
        const std::lock_guard lock(mutex);
        if (!first)
          first = std::current_exception();
      }
      registry.abort_all(
        {.code = Errc::aborted, .who = "bench", .what = error.what()});
    }
  };
  std::vector<std::thread> others;
  for (std::uint32_t member = 1; member < members; ++member)
    others.emplace_back(guarded, member);
  guarded(0);
  for (std::thread& other : others)
    other.join();
  if (first)
    std::rethrow_exception(first);
}

} // namespace troupe::bench
