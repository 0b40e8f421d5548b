#include "models/gpu/gpu_memory.hpp"

#include "models/gpu/gpu_copies.hpp"
#include "net/base/gpu_handles.hpp"
#include "net/base/gpus.hpp"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

namespace troupe::models {

namespace {

/// libtorch gives back what it keeps before it says that there is too little.
constexpr net::GpuAllocator gpu_allocator{
  [](std::size_t size_bytes) -> void* {
    try {
      return c10::GetAllocator(c10::DeviceType::CUDA)->raw_allocate(size_bytes);
    } catch (const c10::OutOfMemoryError&) {
      return nullptr;
    }
  },
  [](void* data) {
    c10::GetAllocator(c10::DeviceType::CUDA)->raw_deallocate(data);
  }};

constexpr net::PeerBlocks gpu_peers{
  [](const void* data) {
    return net::share_gpu_memory(net::CudaRuntime::machine(), data);
  },
  [](const net::DeviceHandle& place) {
    return net::map_gpu_memory(net::CudaRuntime::machine(), place);
  },
  [](const void* data, const net::DeviceHandle& place) {
    net::unmap_gpu_memory(net::CudaRuntime::machine(), data, place);
  }};

} // namespace

const net::BlockMemory& gpu_memory() {
  static const net::BlockMemory memory{
    [](std::size_t size_bytes) {
      return net::take_gpu_memory(net::CudaRuntime::machine(), gpu_allocator,
                                  size_bytes);
    },
    [](void* data) { net::give_gpu_memory(gpu_allocator, data); },
    [](const void* from, void* to, std::size_t size_bytes) {
      net::read_gpu_memory(net::CudaRuntime::machine(), from, to, size_bytes);
    },
    [](const void* from, void* to, std::size_t size_bytes) {
      net::write_gpu_memory(net::CudaRuntime::machine(), from, to, size_bytes);
    },
    [](const void* from, void* to, std::span<const ByteRuns> runs) {
      net::copy_gpu_memory(net::CudaRuntime::machine(), from, to, runs);
    },
    [](const void* data) { return net::gpu_of_memory(data) >= 0; },
    &gpu_peers,
    gpu_copies()};
  return memory;
}

} // namespace troupe::models
