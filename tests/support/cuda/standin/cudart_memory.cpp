// Memory and copies of CUDA's runtime. A copy between a GPU and pageable memory
// of the host is staged when it is called, as CUDA does; from a GPU to such
// memory it waits.
#include "memory.hpp"
#include "state.hpp"
#include "streams.hpp"
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

using namespace troupe::standin;

namespace {

int current() {
  return thread_state().device;
}

cudaError_t take(void** data, std::size_t size_bytes, Kind kind) {
  *data = memory().take(size_bytes, kind, current());
  return *data == nullptr ? said(cudaErrorMemoryAllocation) : cudaSuccess;
}

/// Facts of a block that another process needs.
struct IpcHandle {
  int process;
  int file;
  int device;
  std::size_t size_bytes;
};

cudaError_t copy_async(void* to, const void* from, std::size_t size_bytes,
                       cudaStream_t stream, int device) {
  Work work{"cudaMemcpyAsync", {{to, size_bytes}, {from, size_bytes}}, {}};
  const bool from_pageable = memory().find(from) == nullptr;
  const bool to_pageable = memory().find(to) == nullptr;
  if (from_pageable) {
    const auto* bytes = static_cast<const char*>(from);
    const auto staged
      = std::make_shared<std::vector<char>>(bytes, bytes + size_bytes);
    work.ranges.pop_back();
    work.body = [=] { std::memcpy(to, staged->data(), size_bytes); };
  } else {
    work.body = [=] { std::memmove(to, from, size_bytes); };
  }
  if (const auto failed = enqueue(stream, device, std::move(work)))
    return failed;
  if (!to_pageable)
    return after_work();
  {
    const Lock lock(mutex());
    if (streams().find(stream, device)->capture) {
      fault(cudaSuccess, "a copy to pageable memory is captured");
      return said(cudaErrorStreamCaptureUnsupported);
    }
  }
  return cudaStreamSynchronize(stream);
}

} // namespace

extern "C" {

cudaError_t cudaMalloc(void** data, size_t size_bytes) {
  if (const auto refused = check_unsafe("cudaMalloc"))
    return refused;
  return take(data, size_bytes, Kind::device);
}
cudaError_t cudaMallocManaged(void** data, size_t size_bytes, unsigned) {
  if (const auto refused = check_unsafe("cudaMallocManaged"))
    return refused;
  return take(data, size_bytes, Kind::managed);
}
cudaError_t cudaHostAlloc(void** data, size_t size_bytes, unsigned) {
  if (const auto refused = check_unsafe("cudaHostAlloc"))
    return refused;
  return take(data, size_bytes, Kind::pinned);
}
cudaError_t cudaMallocHost(void** data, size_t size_bytes) {
  return cudaHostAlloc(data, size_bytes, cudaHostAllocDefault);
}
// CUDA waits for what uses memory of a GPU, which libtorch relies on, and does
// not promise it for managed memory.
cudaError_t cudaFree(void* data) {
  if (data == nullptr)
    return cudaSuccess;
  if (const auto refused = check_unsafe("cudaFree"))
    return refused;
  const Block* block = memory().find(data);
  if (block == nullptr)
    return said(cudaErrorInvalidValue);
  if (block->kind == Kind::device)
    queue().run_ready();
  return memory().give(data) ? after_work() : said(cudaErrorInvalidValue);
}
cudaError_t cudaFreeHost(void* data) {
  queue().run_ready();
  return data == nullptr || memory().give(data) ? after_work()
                                                : said(cudaErrorInvalidValue);
}
cudaError_t cudaMallocAsync(void** data, size_t size_bytes, cudaStream_t) {
  return take(data, size_bytes, Kind::device);
}
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  return enqueue(stream, current(),
                 {"cudaFreeAsync", {}, [=] { memory().give(data); }});
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const std::size_t taken = memory().taken(current());
  *total = state().device_bytes;
  *free = taken < *total ? *total - taken : 0;
  return cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void* data, size_t size_bytes,
                                 cudaMemLocation to, unsigned,
                                 cudaStream_t stream) {
  const Block* block = memory().find(data);
  if (block == nullptr || block->kind != Kind::managed)
    return said(cudaErrorInvalidValue);
  const bool to_host = to.type != cudaMemLocationTypeDevice;
  return enqueue(stream, current(),
                 {"cudaMemPrefetchAsync", {{data, size_bytes}}, [=] {
                    memory().move_pages(data, to_host);
                  }});
}
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise,
                          cudaMemLocation) {
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* data, size_t size_bytes, unsigned) {
  if (const auto refused = check_unsafe("cudaHostRegister"))
    return refused;
  return memory().lock(data, size_bytes, current())
           ? cudaSuccess
           : said(cudaErrorHostMemoryAlreadyRegistered);
}
cudaError_t cudaHostUnregister(void* data) {
  return memory().unlock(data) ? cudaSuccess
                               : said(cudaErrorHostMemoryNotRegistered);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found,
                                     const void* data) {
  *found = {};
  const Lock lock(mutex());
  const Block* block = memory().find(data);
  if (block == nullptr)
    return cudaSuccess; // unregistered memory of the host
  found->type = block->kind == Kind::managed ? cudaMemoryTypeManaged
                : block->kind == Kind::pinned || block->kind == Kind::locked
                  ? cudaMemoryTypeHost
                  : cudaMemoryTypeDevice;
  found->device = block->device;
  found->devicePointer = const_cast<void*>(data);
  if (found->type != cudaMemoryTypeDevice)
    found->hostPointer = const_cast<void*>(data);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size_bytes,
                            cudaMemcpyKind, cudaStream_t stream) {
  return copy_async(to, from, size_bytes, stream, current());
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int,
                                size_t size_bytes, cudaStream_t stream) {
  return copy_async(to, from, size_bytes, stream, current());
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                              size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind, cudaStream_t stream) {
  for (std::size_t row = 0; row < height; ++row)
    if (const auto failed
        = copy_async(static_cast<char*>(to) + row * to_pitch,
                     static_cast<const char*>(from) + row * from_pitch, width,
                     stream, current()))
      return failed;
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t size_bytes,
                       cudaMemcpyKind) {
  if (const auto refused = check_unsafe("cudaMemcpy"))
    return refused;
  count_wait("cudaMemcpy");
  if (const auto failed
      = copy_async(to, from, size_bytes, cudaStreamLegacy, current()))
    return failed;
  return cudaStreamSynchronize(cudaStreamLegacy);
}
cudaError_t cudaMemsetAsync(void* data, int value, size_t size_bytes,
                            cudaStream_t stream) {
  return enqueue(stream, current(),
                 {"cudaMemsetAsync", {{data, size_bytes}}, [=] {
                    std::memset(data, value, size_bytes);
                  }});
}
cudaError_t cudaMemset(void* data, int value, size_t size_bytes) {
  if (const auto refused = check_unsafe("cudaMemset"))
    return refused;
  return cudaMemsetAsync(data, value, size_bytes, cudaStreamLegacy);
}

/// The driver's function, which programs find by cudaGetDriverEntryPoint.
int cuMemGetAddressRange(const void** base, size_t* size_bytes,
                         const void* data) {
  const Lock lock(mutex());
  const Block* block = memory().find(data);
  if (block == nullptr)
    return said(cudaErrorInvalidValue);
  *base = memory().start_of(data);
  *size_bytes = block->size_bytes;
  return 0;
}
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* made, void* data) {
  const Lock lock(mutex());
  const Block* block = memory().find(data);
  if (block == nullptr || block->file < 0)
    return said(cudaErrorInvalidValue);
  const IpcHandle handle{::getpid(), block->file, block->device,
                         block->size_bytes};
  *made = {};
  std::memcpy(made, &handle, sizeof handle);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void** data, cudaIpcMemHandle_t from,
                                 unsigned) {
  IpcHandle handle{};
  std::memcpy(&handle, &from, sizeof handle);
  if (handle.process == ::getpid())
    return said(cudaErrorDeviceUninitialized); // as CUDA: for others only
  const std::string path = "/proc/" + std::to_string(handle.process) + "/fd/"
                           + std::to_string(handle.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    return said(cudaErrorInvalidValue);
  *data = memory().open(file, handle.size_bytes, handle.device);
  return *data == nullptr ? said(cudaErrorInvalidValue) : cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void* data) {
  return cudaFree(data);
}
}
