// Pretended GPUs (docs/gpu_tests.md) as the devices of a replica, with NCCL
// between them, and what their stand-in counts.
#pragma once

#include "models/gpu/gpu.hpp"
#include "models/gpu/gpu_memory.hpp"
#include "net/base/gpus.hpp"
#include "net/collectives/nccl_collectives.hpp"
#include "net/collectives/staged_collectives.hpp"

#include "tests/support/models/parallel_support.hpp"
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace troupe::testing {

/// The stand-in's own functions (tests/support/cuda/standin/standin.hpp).
struct Standin {
  void (*begin)(std::uint64_t seed); ///< null: not under tests/gpu/standin.sh
  long (*faults)();
  const char* (*fault)();
  long (*launches)(const char* part);
  long (*waits)(const char* part);

  static Standin of_process() {
    const auto find
      = [](const char* name) { return ::dlsym(RTLD_DEFAULT, name); };
    return {reinterpret_cast<void (*)(std::uint64_t)>(find("standin_begin")),
            reinterpret_cast<long (*)()>(find("standin_faults")),
            reinterpret_cast<const char* (*)()>(find("standin_fault")),
            reinterpret_cast<long (*)(const char*)>(find("standin_launches")),
            reinterpret_cast<long (*)(const char*)>(find("standin_waits"))};
  }
};

/// Returns a GPU for each device of a replica, and NCCL between them.
/// `of_hosts` may change the groups of hosts that they meet in.
inline ReplicaDevices pretended_gpus(
  const net::NcclLibrary& nccl = net::NcclLibrary::machine(),
  const std::function<std::shared_ptr<net::Collectives>(
    std::shared_ptr<net::Collectives>)>& of_hosts
  = [](auto host) { return host; }) {
  constexpr std::chrono::milliseconds deadline{60'000};
  return {
    .backend = &models::gpu_backend,
    .join =
      [of_hosts, &nccl](std::shared_ptr<net::Collectives> host,
                        std::uint32_t device) {
        auto offers = net::nccl_offers(host->size(), net::find_gpus());
        return net::make_nccl_collectives(
          {.group = "replica",
           .host = net::make_staged_collectives(of_hosts(std::move(host)),
                                                models::gpu_memory()),
           .device = static_cast<int>(device),
           .progress_deadline = deadline,
           .offers = std::move(offers),
           .thread_stream
           = [device] { return models::gpu_stream(static_cast<int>(device)); }},
          nccl);
      },
    .memory = &models::gpu_memory()};
}

} // namespace troupe::testing
