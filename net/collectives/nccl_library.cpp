#include "net/collectives/nccl_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace troupe::net {

namespace {

/// cudaPointerAttributes begins with the kind of memory; the rest differs
/// between versions and is smaller than this.
constexpr std::size_t nccl_attribute_bytes = 256;
constexpr int nccl_device_memory = 2;
constexpr int nccl_managed_memory = 3;

template <class Function>
void nccl_find(void* file, const char* name, Function*& function,
               std::string& missing) {
  function = reinterpret_cast<Function*>(::dlsym(file, name));
  if (function == nullptr && missing.empty())
    missing = std::string("no function ") + name;
}

void* nccl_open(const char* file, std::string& missing) {
  void* found = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (found == nullptr && missing.empty())
    missing = ::dlerror();
  return found;
}

} // namespace

NcclLibrary NcclLibrary::open(const char* nccl, const char* cuda_runtime) {
  NcclLibrary lib;
  void* const n = nccl_open(nccl, lib.why_not);
  void* const c = nccl_open(cuda_runtime, lib.why_not);
  if (n == nullptr || c == nullptr)
    return lib;
  nccl_find(n, "ncclGetVersion", lib.get_version, lib.why_not);
  nccl_find(n, "ncclGetErrorString", lib.error_text, lib.why_not);
  nccl_find(n, "ncclGetUniqueId", lib.get_id, lib.why_not);
  nccl_find(n, "ncclCommInitRank", lib.init_rank, lib.why_not);
  nccl_find(n, "ncclCommAbort", lib.abort, lib.why_not);
  nccl_find(n, "ncclCommGetAsyncError", lib.async_error, lib.why_not);
  nccl_find(n, "ncclAllReduce", lib.all_reduce, lib.why_not);
  nccl_find(n, "ncclAllGather", lib.all_gather, lib.why_not);
  nccl_find(n, "ncclReduceScatter", lib.reduce_scatter, lib.why_not);
  nccl_find(n, "ncclBroadcast", lib.broadcast, lib.why_not);
  nccl_find(c, "cudaSetDevice", lib.set_device, lib.why_not);
  nccl_find(c, "cudaStreamCreateWithFlags", lib.make_stream, lib.why_not);
  nccl_find(c, "cudaStreamQuery", lib.query_stream, lib.why_not);
  nccl_find(c, "cudaStreamDestroy", lib.drop_stream, lib.why_not);
  nccl_find(c, "cudaPointerGetAttributes", lib.pointer_attributes, lib.why_not);
  return lib;
}

const NcclLibrary& NcclLibrary::machine() {
  static const NcclLibrary library = open("libnccl.so.2", "libcudart.so.13");
  return library;
}

std::string NcclLibrary::version() const {
  int number = 0;
  if (get_version == nullptr || get_version(&number) != 0)
    return "";
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100,
                     number % 100);
}

bool NcclLibrary::on_gpu(const void* pointer) const {
  alignas(16) char attributes[nccl_attribute_bytes] = {};
  if (pointer_attributes(attributes, pointer) != 0)
    return false;
  const int kind = *reinterpret_cast<const int*>(attributes);
  return kind == nccl_device_memory || kind == nccl_managed_memory;
}

} // namespace troupe::net
