// Memory of a GPU that several processes of one host use: CUDA's IPC. A handle
// opens the whole allocation that a block is in, so a block's place is a handle
// and an offset. Only processes that see the same GPU can open it, which its
// UUID tells; others get the bytes another way.
#pragma once

#include "net/base/block_memory.hpp"
#include "net/base/gpus.hpp"

#include <optional>

namespace troupe::net {

/// Returns the place of a block that was taken by `take_gpu_memory`; nullopt if
/// the driver refuses.
std::optional<DeviceHandle> share_gpu_memory(const CudaRuntime& cuda,
                                             const void* data);
/// Maps a block of another process; null if the driver refuses or this process
/// does not see the GPU.
const void* map_gpu_memory(const CudaRuntime& cuda, const DeviceHandle& place);
void unmap_gpu_memory(const CudaRuntime& cuda, const void* data,
                      const DeviceHandle& place);

} // namespace troupe::net
