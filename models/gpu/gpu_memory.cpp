#include "models/gpu/gpu_memory.hpp"

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

} // namespace

const net::BlockMemory& gpu_memory() {
  static constexpr net::BlockMemory memory{
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
    [](const void* from, void* to, std::size_t size_bytes) {
      net::copy_gpu_memory(net::CudaRuntime::machine(), from, to, size_bytes);
    },
    net::is_gpu_memory};
  return memory;
}

} // namespace troupe::models
