// CUDA's runtime with the interface that cuda_runtime.hpp needs, for two
// pretended GPUs: their memory is the host's. It keeps what a driver keeps per
// thread (current device, last error) and per device (free memory, contexts,
// kernels under way), and counts what a driver would punish: a block freed or
// copied under a kernel. A shared library of its own, so that the program finds
// it in the same way as the real one.
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace {

constexpr int num_devices = 2;
constexpr std::size_t device_bytes = std::size_t{64} << 20;
constexpr int invalid_value = 1;
constexpr int no_memory = 2;
constexpr int invalid_device = 101;

struct Block {
  std::size_t size_bytes = 0;
  int device = 0;
};

struct State {
  std::map<void*, Block> blocks;
  std::set<std::pair<int, void*>> kernels; ///< under way: device, block
  std::set<int> contexts;
  int faults = 0;
  int count_result = 0;
  int opened = 0; ///< memory of "other" processes
};

/// A block of this process, in a driver's place.
struct IpcHandle {
  void* base;
  int device;
  char rest[52];
};
static_assert(sizeof(IpcHandle) == 64);

std::mutex mutex;
State state;
thread_local int current = 0;
thread_local int last_error = 0;

int said(int result) {
  if (result != 0)
    last_error = result;
  return result;
}

/// Makes the context of the current device, as most calls do.
void use_device() {
  state.contexts.insert(current);
}

bool is_in_use(void* data, int except_device) {
  for (const auto& [device, block] : state.kernels)
    if (block == data && device != except_device)
      return true;
  return false;
}

std::size_t free_bytes(int device) {
  std::size_t free = device_bytes;
  for (const auto& [data, block] : state.blocks)
    if (block.device == device)
      free -= block.size_bytes;
  return free;
}

} // namespace

extern "C" {

int cudaDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cudaGetDeviceCount(int* count) {
  *count = num_devices;
  return said(state.count_result);
}
int cudaGetDeviceProperties(void* properties, int device) {
  auto* bytes = static_cast<char*>(properties);
  std::strcpy(bytes, device == 0 ? "first" : "second");
  bytes[256] = static_cast<char>(device + 1); // its UUID
  std::memcpy(bytes + 288, &device_bytes, sizeof device_bytes);
  return 0;
}
int cudaDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : 0;
  return 0;
}
int cudaGetDevice(int* device) {
  *device = current;
  return 0;
}
int cudaSetDevice(int device) {
  if (device < 0 || device >= num_devices)
    return said(invalid_device);
  current = device;
  const std::lock_guard lock(mutex);
  use_device(); // since CUDA 12
  return 0;
}
int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(mutex);
  use_device();
  *free = free_bytes(current);
  *total = device_bytes;
  return 0;
}
int cudaMalloc(void** data, std::size_t size_bytes) {
  const std::lock_guard lock(mutex);
  use_device();
  if (size_bytes > free_bytes(current))
    return said(no_memory);
  *data = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(*data, 0xff, size_bytes);
  state.blocks[*data] = {size_bytes, current};
  return 0;
}
int cudaFree(void* data) {
  const std::lock_guard lock(mutex);
  const auto found = state.blocks.find(data);
  if (found == state.blocks.end())
    return said(invalid_value);
  constexpr int none = -1;
  state.faults += static_cast<int>(is_in_use(data, none));
  ::munmap(data, found->second.size_bytes);
  state.blocks.erase(found);
  return 0;
}
int cudaMemsetAsync(void* data, int value, std::size_t size_bytes, void*) {
  const std::lock_guard lock(mutex);
  use_device();
  std::memset(data, value, size_bytes);
  state.kernels.emplace(current, data);
  return 0;
}
int cudaMemcpyAsync(void* to, const void* from, std::size_t size_bytes, int,
                    void*) {
  const std::lock_guard lock(mutex);
  use_device();
  for (const auto& [data, block] : state.blocks) // streams of other devices
    if (data == from || data == to)              // are not waited for
      state.faults += static_cast<int>(is_in_use(data, current));
  std::memcpy(to, from, size_bytes);
  return 0;
}
int cudaMemcpy2DAsync(void* to, std::size_t to_stride, const void* from,
                      std::size_t from_stride, std::size_t row_bytes,
                      std::size_t rows, int kind, void* stream) {
  if (row_bytes > to_stride || row_bytes > from_stride)
    return said(invalid_value);
  for (std::size_t i = 0; i < rows; ++i)
    cudaMemcpyAsync(static_cast<char*>(to) + i * to_stride,
                    static_cast<const char*>(from) + i * from_stride, row_bytes,
                    kind, stream);
  return 0;
}
int cudaIpcGetMemHandle(IpcHandle* handle, void* base) {
  const std::lock_guard lock(mutex);
  if (!state.blocks.contains(base))
    return said(invalid_value);
  *handle = {base, state.blocks[base].device, {}};
  return 0;
}
int cudaIpcOpenMemHandle(void** base, IpcHandle handle, unsigned) {
  const std::lock_guard lock(mutex);
  if (handle.device != current || !state.blocks.contains(handle.base))
    return said(invalid_value);
  *base = handle.base;
  ++state.opened;
  return 0;
}
int cudaIpcCloseMemHandle(void* base) {
  const std::lock_guard lock(mutex);
  if (!state.blocks.contains(base))
    return said(invalid_value);
  --state.opened;
  return 0;
}
int fake_address_range(void** base, std::size_t* size_bytes, void* data) {
  const std::lock_guard lock(mutex);
  auto after = state.blocks.upper_bound(data);
  if (after == state.blocks.begin())
    return invalid_value;
  const auto& [begin, block] = *--after;
  *base = begin;
  *size_bytes = block.size_bytes;
  return 0;
}
int cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned,
                                     unsigned long long, int*) {
  *found = std::strcmp(name, "cuMemGetAddressRange") == 0
             ? reinterpret_cast<void*>(fake_address_range)
             : nullptr;
  return 0;
}
int cudaStreamSynchronize(void*) {
  const std::lock_guard lock(mutex);
  use_device();
  std::erase_if(state.kernels,
                [](const auto& kernel) { return kernel.first == current; });
  return 0;
}
int cudaGetLastError() {
  return std::exchange(last_error, 0);
}
const char* cudaGetErrorString(int) {
  return "fake error";
}

/// Starts a kernel that uses the block, on the current device.
void fake_cuda_kernel(void* data) {
  const std::lock_guard lock(mutex);
  state.kernels.emplace(current, data);
}
/// Returns how often a block was freed or copied under a kernel.
int fake_cuda_faults() {
  const std::lock_guard lock(mutex);
  return state.faults;
}
/// Returns whether any thread has made the device's context.
int fake_cuda_has_context(int device) {
  const std::lock_guard lock(mutex);
  return static_cast<int>(state.contexts.contains(device));
}
int fake_cuda_opened() {
  const std::lock_guard lock(mutex);
  return state.opened;
}
/// Begins anew, with a driver that answers the first question with
/// `count_result`.
void fake_cuda_begin(int count_result) {
  const std::lock_guard lock(mutex);
  state = {};
  state.count_result = count_result;
  current = 0;
  last_error = 0;
}
}
