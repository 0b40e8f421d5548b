#include "net/base/gpus.hpp"

#include "net/base/cuda_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <mutex>

#ifdef TROUPE_CUDA_BUILD
#include <cuda_runtime_api.h>
#endif

namespace troupe::net {

namespace {

constexpr int gpu_no_device = 100;
constexpr int gpu_generation = 75;     // cudaDevAttrComputeCapabilityMajor
constexpr int gpu_copy_by_address = 4; // cudaMemcpyDefault

/// The head of cudaDeviceProp, and room for the rest of it.
struct GpuProperties {
  char name[256];
  GpuIdentity identity;
  char host_identity[16];
  std::size_t total_bytes;
  std::array<char, 4096> rest;
};

#ifdef TROUPE_CUDA_BUILD
static_assert(offsetof(cudaDeviceProp, uuid)
                == offsetof(GpuProperties, identity)
              && offsetof(cudaDeviceProp, totalGlobalMem)
                   == offsetof(GpuProperties, total_bytes)
              && sizeof(cudaDeviceProp) <= sizeof(GpuProperties)
              && cudaErrorNoDevice == gpu_no_device
              && cudaDevAttrComputeCapabilityMajor == gpu_generation
              && cudaMemcpyDefault == gpu_copy_by_address);
#endif

/// The device that each block was taken on: another thread may free it.
class GpuBlocks {
public:
  void add(const void* data, std::size_t size_bytes, int device) {
    const std::lock_guard lock(mutex_);
    blocks_[data] = {size_bytes, device};
  }
  /// Returns the device of the block that has the address; -1: none has.
  int device_of(const void* data) {
    const std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(data);
    if (after == blocks_.begin())
      return -1;
    const auto& [begin, block] = *--after;
    const auto offset = static_cast<const std::byte*>(data)
                        - static_cast<const std::byte*>(begin);
    return static_cast<std::size_t>(offset) < block.size_bytes ? block.device
                                                               : -1;
  }
  void remove(const void* data) {
    const std::lock_guard lock(mutex_);
    blocks_.erase(data);
  }

private:
  struct Block {
    std::size_t size_bytes = 0;
    int device = 0;
  };
  std::mutex mutex_;
  std::map<const void*, Block> blocks_;
};

GpuBlocks& gpu_blocks() {
  static auto& blocks = *new GpuBlocks; // blocks are freed until the very end
  return blocks;
}

struct GpuRoom {
  std::size_t free = 0;
  std::size_t total = 0;
};

GpuRoom gpu_room(const CudaRuntime& cuda) {
  GpuRoom room;
  gpu_check(cuda, cuda.memory_info(&room.free, &room.total),
            "the driver does not tell how much memory is free");
  return room;
}

[[noreturn]] void gpu_fail_full(const CudaRuntime& cuda, std::size_t size_bytes,
                                int device) {
  const GpuRoom room = gpu_room(cuda);
  constexpr double gb = 1e9;
  throw FailureError{
    {.code = Errc::out_of_memory,
     .who = fmt::format("gpu {}", device),
     .what = fmt::format("a block of {:.3f} GB does not fit: {:.3f} GB are "
                         "free of {:.3f} GB",
                         static_cast<double>(size_bytes) / gb,
                         static_cast<double>(room.free) / gb,
                         static_cast<double>(room.total) / gb),
     .cause = ""}};
}

std::string gpu_version(int number) {
  return "CUDA " + std::to_string(number / 1000) + "."
         + std::to_string(number % 1000 / 10);
}

} // namespace

GpuReport find_gpus(const CudaRuntime& cuda) {
  GpuReport report;
  report.why_none = cuda.why_not;
  if (!cuda.why_not.empty())
    return report;
  int number = 0;
  if (cuda.devices.driver_version(&number) == 0 && number > 0)
    report.driver = gpu_version(number);
  int count = 0;
  const int result = cuda.devices.count(&count);
  if (result != 0) {
    cuda.clear_error();
    report.why_none
      = report.driver.empty() ? "no NVIDIA driver" : cuda.error_text(result);
    report.is_refused = !report.driver.empty() && result != gpu_no_device;
    return report;
  }
  for (int i = 0; i < count; ++i) {
    constexpr auto unknown = "the driver does not describe a GPU";
    GpuProperties properties{};
    gpu_check(cuda, cuda.devices.properties(&properties, i), unknown);
    int generation = 0;
    gpu_check(cuda, cuda.devices.attribute(&generation, gpu_generation, i),
              unknown);
    report.names.emplace_back(properties.name);
    report.generations.push_back(generation);
    report.memory_bytes.push_back(properties.total_bytes);
    report.ids.push_back(properties.identity);
  }
  if (count == 0)
    report.why_none = "the driver knows no GPU";
  return report;
}

void* take_gpu_memory(const CudaRuntime& cuda, const GpuAllocator& allocator,
                      std::size_t size_bytes) {
  int device = 0;
  gpu_check(cuda, cuda.get_device(&device), "there is no current GPU");
  void* data = allocator.take(size_bytes);
  if (data == nullptr)
    gpu_fail_full(cuda, size_bytes, device);
  gpu_blocks().add(data, size_bytes, device);
  try {
    gpu_check(cuda, cuda.copies.set_bytes(data, 0, size_bytes, nullptr),
              "a block could not be zeroed");
  } catch (...) {
    give_gpu_memory(allocator, data);
    throw;
  }
  return data;
}

void give_gpu_memory(const GpuAllocator& allocator, void* data) {
  if (data == nullptr)
    return;
  gpu_blocks().remove(data);
  allocator.give(data);
}

namespace {

/// Longest stride of cudaMemcpy2D (cudaDevAttrMaxPitch).
constexpr std::uint64_t gpu_longest_stride = 0x7fffffff;
constexpr auto gpu_copy_failed = "numbers could not be copied";

/// Copies bytes in the order of the current device's default stream.
void gpu_start_copy(const CudaRuntime& cuda, const void* from, void* to,
                    std::size_t size_bytes) {
  gpu_check(
    cuda,
    cuda.copies.copy_bytes(to, from, size_bytes, gpu_copy_by_address, nullptr),
    gpu_copy_failed);
}

void gpu_start_copy(const CudaRuntime& cuda, const std::byte* from,
                    std::byte* to, const ByteRuns& runs) {
  from += runs.source_offset;
  to += runs.target_offset;
  if (runs.runs > 1
      && std::max(runs.source_stride, runs.target_stride)
           <= gpu_longest_stride) {
    gpu_check(cuda,
              cuda.copies.copy_rows(to, runs.target_stride, from,
                                    runs.source_stride, runs.bytes, runs.runs,
                                    gpu_copy_by_address, nullptr),
              gpu_copy_failed);
    return;
  }
  for (std::uint64_t i = 0; i < runs.runs; ++i)
    gpu_start_copy(cuda,
                   static_cast<const void*>(from + i * runs.source_stride),
                   to + i * runs.target_stride, runs.bytes);
}

void gpu_copy(const CudaRuntime& cuda, const void* from, void* to,
              std::size_t size_bytes, int device) {
  const GpuGuard guard(cuda, device);
  gpu_start_copy(cuda, from, to, size_bytes);
  gpu_check(cuda, cuda.wait_stream(nullptr), gpu_copy_failed);
}

} // namespace

void read_gpu_memory(const CudaRuntime& cuda, const void* from, void* to,
                     std::size_t size_bytes) {
  gpu_copy(cuda, from, to, size_bytes, gpu_blocks().device_of(from));
}

void write_gpu_memory(const CudaRuntime& cuda, const void* from, void* to,
                      std::size_t size_bytes) {
  gpu_copy(cuda, from, to, size_bytes, gpu_blocks().device_of(to));
}

void copy_gpu_memory(const CudaRuntime& cuda, const void* from, void* to,
                     std::span<const ByteRuns> runs) {
  int device = gpu_blocks().device_of(to);
  if (device < 0)
    device = gpu_blocks().device_of(from);
  const GpuGuard guard(cuda, device);
  for (const ByteRuns& part : runs)
    gpu_start_copy(cuda, static_cast<const std::byte*>(from),
                   static_cast<std::byte*>(to), part);
  gpu_check(cuda, cuda.wait_stream(nullptr), gpu_copy_failed);
}

int gpu_of_memory(const void* data) {
  return gpu_blocks().device_of(data);
}

} // namespace troupe::net
