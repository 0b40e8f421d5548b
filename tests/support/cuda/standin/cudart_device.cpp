// Devices, errors and launches of CUDA's runtime: pretended H100s. A kernel is
// counted by its name; it runs if it has a host body (standin.hpp).
#include "memory.hpp"
#include "state.hpp"
#include "streams.hpp"
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

using namespace troupe::standin;

namespace {

constexpr int version = 13000;
constexpr int shared_of_a_block = 232448;
constexpr int shared_of_a_processor = 233472;
constexpr int num_processors = 132;
constexpr int threads_of_a_block = 1024;
constexpr int threads_of_a_processor = 2048;
constexpr int registers = 65536;

struct Kernels {
  std::map<const void*, std::string> names; ///< by the host's stub
  std::map<std::string, BindKernel> bodies;
};

Kernels& kernels() {
  static auto& only = *new Kernels;
  return only;
}

struct Launch {
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes;
  void* stream;
};
thread_local Launch pushed{};

/// Loads what fills the results of libtorch's operators, where libtorch is in
/// the process: not in the other programs that a run starts.
void load_operators() {
  static const bool once = [] {
    const char* file = std::getenv("TROUPE_STANDIN_OPERATORS");
    if (file == nullptr
        || ::dlopen("libtorch_cuda.so", RTLD_NOLOAD | RTLD_LAZY) == nullptr)
      return false;
    if (::dlopen(file, RTLD_NOW | RTLD_GLOBAL) == nullptr)
      fault(cudaSuccess, ::dlerror());
    return true;
  }();
  static_cast<void>(once);
}

cudaError_t launch(const void* stub, Grid grid, void** args,
                   cudaStream_t stream) {
  const Lock lock(mutex());
  const auto found = kernels().names.find(stub);
  const std::string name
    = found == kernels().names.end() ? "unknown kernel" : found->second;
  count_launch(name);
  Work work{name, {}, {}};
  const auto body = kernels().bodies.find(name);
  if (body != kernels().bodies.end())
    work.body = body->second(args, grid);
  else if (!thread_state().is_shadow)
    ++state().bodiless[name];
  return streams().append(stream, thread_state().device, std::move(work));
}

} // namespace

namespace troupe::standin {

void set_kernel_body(const std::string& name, BindKernel bind) {
  const Lock lock(mutex());
  kernels().bodies[name] = std::move(bind);
}

} // namespace troupe::standin

extern "C" {

cudaError_t cudaDriverGetVersion(int* number) {
  *number = version;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* number) {
  *number = version;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  load_operators();
  *count = state().num_devices;
  return *count == 0 ? said(cudaErrorNoDevice) : cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = thread_state().device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= state().num_devices)
    return said(cudaErrorInvalidDevice);
  thread_state().device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int device) {
  if (device < 0 || device >= state().num_devices)
    return said(cudaErrorInvalidDevice);
  *found = {};
  std::snprintf(found->name, sizeof found->name, "stand-in for an H100");
  found->uuid.bytes[0] = static_cast<char>(device + 1);
  found->uuid.bytes[1] = static_cast<char>(state().host);
  found->pciBusID = device + 1;
  found->major = 9;
  found->totalGlobalMem = state().device_bytes;
  found->multiProcessorCount = num_processors;
  found->warpSize = 32;
  found->maxThreadsPerBlock = threads_of_a_block;
  found->maxThreadsPerMultiProcessor = threads_of_a_processor;
  found->maxBlocksPerMultiProcessor = 32;
  found->sharedMemPerBlock = 49152;
  found->sharedMemPerBlockOptin = shared_of_a_block;
  found->sharedMemPerMultiprocessor = shared_of_a_processor;
  found->regsPerBlock = found->regsPerMultiprocessor = registers;
  found->maxGridSize[0] = 2147483647;
  found->maxGridSize[1] = found->maxGridSize[2] = 65535;
  found->maxThreadsDim[0] = found->maxThreadsDim[1] = threads_of_a_block;
  found->maxThreadsDim[2] = 64;
  found->l2CacheSize = 50 << 20;
  found->memoryBusWidth = 5120;
  found->textureAlignment = 512;
  found->concurrentKernels = found->unifiedAddressing = 1;
  found->managedMemory = found->concurrentManagedAccess = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  static const std::map<int, int> values{
    {cudaDevAttrMultiProcessorCount, num_processors},
    {cudaDevAttrComputeCapabilityMajor, 9},
    {cudaDevAttrConcurrentManagedAccess, 1},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxThreadsPerBlock, threads_of_a_block},
    {cudaDevAttrMaxThreadsPerMultiProcessor, threads_of_a_processor},
    {cudaDevAttrMaxRegistersPerMultiprocessor, registers},
    {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, shared_of_a_block},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, shared_of_a_processor},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrCooperativeLaunch, 1}};
  const auto known = values.find(attribute);
  *value = known == values.end() ? 0 : known->second;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0",
                device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return std::exchange(thread_state().last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() {
  return thread_state().last_error;
}
const char* cudaGetErrorName(cudaError_t result) {
  switch (result) {
  case cudaSuccess:
    return "cudaSuccess";
  case cudaErrorInvalidValue:
    return "cudaErrorInvalidValue";
  case cudaErrorMemoryAllocation:
    return "cudaErrorMemoryAllocation";
  case cudaErrorInvalidDevice:
    return "cudaErrorInvalidDevice";
  case cudaErrorNotReady:
    return "cudaErrorNotReady";
  case cudaErrorIllegalAddress:
    return "cudaErrorIllegalAddress";
  case cudaErrorStreamCaptureUnsupported:
    return "cudaErrorStreamCaptureUnsupported";
  case cudaErrorStreamCaptureInvalidated:
    return "cudaErrorStreamCaptureInvalidated";
  case cudaErrorNotSupported:
    return "cudaErrorNotSupported";
  default:
    return "cudaError";
  }
}
const char* cudaGetErrorString(cudaError_t result) {
  static thread_local char text[96];
  std::snprintf(text, sizeof text, "error %d of the stand-in for CUDA (%s)",
                static_cast<int>(result), cudaGetErrorName(result));
  return text;
}

void** __cudaRegisterFatBinary(void*) {
  static void* handle[1];
  return handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) {
  return 0;
}
void __cudaRegisterFunction(void**, const char* stub, char*, const char* name,
                            int, uint3*, uint3*, dim3*, dim3*, int*) {
  const Lock lock(mutex());
  kernels().names[stub] = name;
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int,
                       int) {}
unsigned __cudaPushCallConfiguration(dim3 blocks, dim3 threads,
                                     std::size_t shared_bytes, void* stream) {
  pushed = {blocks, threads, shared_bytes, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* blocks, dim3* threads,
                                       std::size_t* shared_bytes,
                                       void* stream) {
  *blocks = pushed.blocks;
  *threads = pushed.threads;
  *shared_bytes = pushed.shared_bytes;
  *static_cast<void**>(stream) = pushed.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 blocks, dim3 threads,
                               void** args, std::size_t, cudaStream_t stream) {
  return launch(kernel, {blocks, threads}, args, stream);
}
cudaError_t cudaLaunchKernel(const void* stub, dim3 blocks, dim3 threads,
                             void** args, size_t, cudaStream_t stream) {
  return launch(stub, {blocks, threads}, args, stream);
}
cudaError_t cudaLaunchCooperativeKernel(const void* stub, dim3 blocks,
                                        dim3 threads, void** args, size_t,
                                        cudaStream_t stream) {
  return launch(stub, {blocks, threads}, args, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void* stub,
                                void** args) {
  return launch(stub, {how->gridDim, how->blockDim}, args, how->stream);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* found, const void*) {
  *found = {};
  found->numRegs = 64;
  found->maxThreadsPerBlock = threads_of_a_block;
  found->binaryVersion = found->ptxVersion = 90;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          const void*, int,
                                                          size_t) {
  *blocks = 2;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   const void*,
                                                                   int, size_t,
                                                                   unsigned) {
  *blocks = 2;
  return cudaSuccess;
}

cudaError_t
cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned,
                                 unsigned long long,
                                 cudaDriverEntryPointQueryResult* result) {
  *found = ::dlsym(RTLD_DEFAULT, name);
  if (result != nullptr)
    *result = *found == nullptr ? cudaDriverEntryPointSymbolNotFound
                                : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
}
