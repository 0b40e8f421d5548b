#include "net/base/gpus.hpp"

#ifdef TROUPE_CUDA_BUILD
#include "config/base/error.hpp"

#include <cuda_runtime_api.h>

#include <cstring>
#include <new>
#endif

namespace troupe::net {

#ifdef TROUPE_CUDA_BUILD

namespace {

void gpu_check(cudaError_t result, const char* what) {
  if (result != cudaSuccess)
    throw FailureError{{.code = Errc::io,
                        .who = "gpu",
                        .what = what,
                        .cause = cudaGetErrorString(result)}};
}

// Allocates and zeroes from the host, so that no device has to be current.
void* gpu_take(std::size_t size_bytes) {
  void* data = nullptr;
  if (cudaMallocManaged(&data, size_bytes, cudaMemAttachGlobal) != cudaSuccess)
    throw std::bad_alloc();
  std::memset(data, 0, size_bytes);
  return data;
}

// Frees the block; cudaFree waits for work that uses it.
void gpu_give(void* data) {
  cudaFree(data);
}

void gpu_evict(void* data, std::size_t size_bytes) {
  const cudaMemLocation host{cudaMemLocationTypeHost, 0};
  gpu_check(cudaMemPrefetchAsync(data, size_bytes, host, 0, nullptr),
            "a plane could not leave the GPU");
  gpu_check(cudaStreamSynchronize(nullptr), "a plane could not leave the GPU");
}

std::string gpu_version(int number) {
  return "CUDA " + std::to_string(number / 1000) + "."
         + std::to_string(number % 1000 / 10);
}

} // namespace

GpuReport find_gpus() {
  GpuReport report;
  int driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0)
    report.driver = gpu_version(driver);
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) {
    report.why_none
      = report.driver.empty() ? "no NVIDIA driver" : cudaGetErrorString(result);
    return report;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    gpu_check(cudaGetDeviceProperties(&properties, i),
              "the driver does not describe a GPU");
    if (properties.concurrentManagedAccess == 0)
      return {.names = {},
              .generations = {},
              .memory_bytes = {},
              .driver = report.driver,
              .why_none = std::string(properties.name)
                          + " does not share its memory with the host"};
    report.names.emplace_back(properties.name);
    report.generations.push_back(properties.major);
    report.memory_bytes.push_back(properties.totalGlobalMem);
  }
  if (count == 0)
    report.why_none = "the driver knows no GPU";
  return report;
}

const BlockMemory* gpu_memory() {
  static constexpr BlockMemory memory{gpu_take, gpu_give, gpu_evict};
  return &memory;
}

#else

GpuReport find_gpus() {
  return {.names = {},
          .generations = {},
          .memory_bytes = {},
          .driver = {},
          .why_none = "this build has no CUDA (cmake --preset cuda)"};
}

const BlockMemory* gpu_memory() {
  return nullptr;
}

#endif

} // namespace troupe::net
