#include "runtime/planning/profile_gpu_links.hpp"

#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/backend.hpp"
#include "models/parallel/ordered_collectives.hpp"
#include "net/base/page_lock.hpp"
#include "plans/cost/profile_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace troupe::runtime {

namespace {

using plans::Hardware;

constexpr std::size_t small_gpu_bytes = 4 << 10;
/// Large blocks: beyond caches, and a small part of the memory.
constexpr double least_gpu_bytes = 64 << 20;
constexpr double most_gpu_bytes = 512 << 20;
constexpr double gpu_memory_divisor = 64;

std::size_t large_gpu_bytes(const Hardware& hardware) {
  const auto bytes = std::clamp(hardware.mem_bytes / gpu_memory_divisor,
                                least_gpu_bytes, most_gpu_bytes);
  return static_cast<std::size_t>(bytes) / 64 * 64;
}

/// A device's memory for its measurements.
struct GpuBlocks {
  GpuBlocks(models::Backend& of, std::size_t size_bytes)
    : backend(of),
      host(size_bytes),
      lock(*of.memory(), host) {
    for (auto* block : {&from, &to})
      block->reserve(static_cast<std::int64_t>(size_bytes / sizeof(float)));
    backend.fill(from.data(), from.capacity(), 1e-30F);
    backend.wait();
  }

  models::Backend& backend;
  models::AlignedFloats from{backend.memory()};
  models::AlignedFloats to{backend.memory()};
  std::vector<std::byte> host;
  net::PageLock lock;
};
using AllGpuBlocks = std::vector<std::unique_ptr<GpuBlocks>>;

AllGpuBlocks make_gpu_blocks(ProfilePool& pool, std::size_t size_bytes) {
  AllGpuBlocks blocks(pool.num_devices());
  pool.together(pool.num_devices(), [&](std::uint32_t i) {
    blocks[i] = std::make_unique<GpuBlocks>(pool.backend(i), size_bytes);
  });
  return blocks;
}

/// Work of `device` on so many floats of its blocks.
using GpuBlockWork = std::function<void(std::uint32_t device, GpuBlocks& blocks,
                                        std::size_t floats)>;

plans::WorkLine measure_gpu_blocks(ProfilePool& pool, std::uint32_t devices,
                                   AllGpuBlocks& blocks,
                                   const GpuBlockWork& work) {
  const auto all = static_cast<std::size_t>(blocks.front()->from.capacity());
  std::vector<plans::TimedWork> found;
  for (const auto floats : {small_gpu_bytes / sizeof(float), all}) {
    const auto seconds = pool.seconds(devices, [&](std::uint32_t i) {
      work(i, *blocks[i], floats);
      blocks[i]->backend.wait();
    });
    found.push_back({static_cast<double>(floats * sizeof(float)), seconds});
  }
  return plans::fit_work(found);
}

/// Copies to the host and back, as an offload and a reload do.
void copy_over_host(GpuBlocks& blocks, std::size_t floats) {
  const auto bytes = floats * sizeof(float);
  const net::BlockMemory& memory = *blocks.backend.memory();
  if (memory.copies == nullptr) {
    memory.read(blocks.from.data(), blocks.host.data(), bytes);
    memory.write(blocks.host.data(), blocks.to.data(), bytes);
    return;
  }
  const auto left = memory.copies->start_read(
    blocks.from.data(), blocks.host.data(), bytes, nullptr);
  left->wait();
  memory.copies
    ->start_write(blocks.host.data(), blocks.to.data(), bytes, nullptr)
    ->wait();
}

void measure_gpu_memory(ProfilePool& pool, AllGpuBlocks& blocks,
                        Hardware& hardware) {
  const auto mib = large_gpu_bytes(hardware) >> 20;
  const auto on_all = [&](const char* what) {
    return fmt::format("measured: {} of {} MiB on {} devices at once", what,
                       mib, pool.num_devices());
  };
  const auto cached = hardware.cache_Bps / hardware.mem_Bps;
  const auto copies
    = measure_gpu_blocks(pool, pool.num_devices(), blocks,
                         [](std::uint32_t, GpuBlocks& own, std::size_t floats) {
                           own.backend.copy(own.from.data(), own.to.data(),
                                            static_cast<std::int64_t>(floats));
                         });
  // a copy reads and writes
  set_number(hardware, "device.mem_Bps", 2 * copies.rate,
             on_all("copies from device to device"));
  set_number(hardware, "device.cache_Bps", cached * hardware.mem_Bps,
             fmt::format("assumed: {:.2f} of the measured mem_Bps", cached));
  const auto over_host
    = measure_gpu_blocks(pool, pool.num_devices(), blocks,
                         [](std::uint32_t, GpuBlocks& own, std::size_t floats) {
                           copy_over_host(own, floats);
                         });
  set_number(hardware, "links.host_Bps", 2 * over_host.rate,
             on_all("copies to page-locked memory and back"));
}

} // namespace

void measure_gpu_links(ProfilePool& pool, plans::Hardware& hardware) {
  auto blocks = make_gpu_blocks(pool, large_gpu_bytes(hardware));
  measure_gpu_memory(pool, blocks, hardware);
  const auto devices = pool.num_devices() / 2 * 2;
  if (devices == 0)
    return;
  const auto by_pairs = [&](const char* what) {
    return fmt::format("fitted to {} of {} KiB and {} MiB, {} pairs at once",
                       what, small_gpu_bytes >> 10,
                       large_gpu_bytes(hardware) >> 20, devices / 2);
  };
  const auto groups = pool.groups_of(2);
  const auto sums = measure_gpu_blocks(
    pool, devices, blocks,
    [&](std::uint32_t i, GpuBlocks& own, std::size_t floats) {
      models::sum_in_order(*groups[i], own.backend, own.to.data(),
                           static_cast<std::int64_t>(floats), "profile");
    });
  set_number(hardware, "links.intra_Bps", sums.rate, by_pairs("all-reduces"));
  set_number(hardware, "links.intra_lat_s", sums.fixed_s,
             by_pairs("all-reduces"));
  const auto gathers = measure_gpu_blocks(
    pool, devices, blocks,
    [&](std::uint32_t i, GpuBlocks& own, std::size_t floats) {
      models::gather_in_order(*groups[i], own.backend, own.to.data(),
                              static_cast<std::int64_t>(floats / 2), "profile");
    });
  // a device receives half of the block
  set_number(hardware, "links.gather_Bps", gathers.rate / 2,
             by_pairs("all-gathers"));
}

} // namespace troupe::runtime
