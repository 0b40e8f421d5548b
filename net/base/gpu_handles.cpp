#include "net/base/gpu_handles.hpp"

#include "net/base/cuda_calls.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe::net {

namespace {

constexpr unsigned gpu_peers_as_needed = 1; // cudaIpcMemLazyEnablePeerAccess
constexpr unsigned gpu_driver_version = 13000;

/// cuMemGetAddressRange: the allocation that an address is in.
using FindAllocation
  = int (*)(const void** base, std::size_t* size_bytes, const void* data);

/// Returns the first byte of the allocation that a block is in: libtorch cuts
/// blocks from large ones. Null if the driver does not tell.
const std::byte* gpu_allocation_of(const CudaRuntime& cuda, const void* data) {
  void* found = nullptr;
  int result = 0;
  const void* base = nullptr;
  std::size_t size_bytes = 0;
  if (cuda.ipc.driver_function("cuMemGetAddressRange", &found,
                               gpu_driver_version, 0, &result)
        != 0
      || found == nullptr
      || reinterpret_cast<FindAllocation>(found)(&base, &size_bytes, data) != 0)
    return nullptr;
  return static_cast<const std::byte*>(base);
}

/// Returns the number of a GPU in this process, or -1.
int gpu_number(const CudaRuntime& cuda, const GpuIdentity& identity) {
  const auto ids = find_gpus(cuda).ids;
  const auto found = std::ranges::find(ids, identity);
  return found == ids.end() ? -1 : static_cast<int>(found - ids.begin());
}

} // namespace

std::optional<DeviceHandle> share_gpu_memory(const CudaRuntime& cuda,
                                             const void* data) {
  const int device = gpu_of_memory(data);
  const auto ids = find_gpus(cuda).ids;
  if (device < 0 || static_cast<std::size_t>(device) >= ids.size())
    return std::nullopt;
  const GpuGuard guard(cuda, device);
  const std::byte* base = gpu_allocation_of(cuda, data);
  CudaIpcHandle handle{};
  if (base == nullptr
      || cuda.ipc.share(&handle, const_cast<std::byte*>(base)) != 0) {
    cuda.clear_error();
    return std::nullopt;
  }
  return DeviceHandle{.handle = handle.bytes,
                      .offset = static_cast<std::uint64_t>(
                        static_cast<const std::byte*>(data) - base),
                      .device = ids[static_cast<std::size_t>(device)]};
}

const void* map_gpu_memory(const CudaRuntime& cuda, const DeviceHandle& place) {
  const int device = gpu_number(cuda, place.device);
  if (device < 0)
    return nullptr;
  const GpuGuard guard(cuda, device);
  void* base = nullptr;
  if (cuda.ipc.open(&base, {place.handle}, gpu_peers_as_needed) != 0) {
    cuda.clear_error();
    return nullptr;
  }
  return static_cast<const std::byte*>(base) + place.offset;
}

void unmap_gpu_memory(const CudaRuntime& cuda, const void* data,
                      const DeviceHandle& place) {
  const GpuGuard guard(cuda, gpu_number(cuda, place.device));
  const auto* base = static_cast<const std::byte*>(data) - place.offset;
  if (cuda.ipc.close(const_cast<std::byte*>(base)) != 0)
    cuda.clear_error();
}

} // namespace troupe::net
