#include "net/collectives/nccl_library.hpp"

#include "net/base/library_file.hpp"

#include <fmt/format.h>

namespace troupe::net {

namespace {

/// cudaPointerAttributes begins with the kind of memory; the rest differs
/// between versions and is smaller than this.
constexpr std::size_t nccl_attribute_bytes = 256;
constexpr int nccl_device_memory = 2;

} // namespace

NcclLibrary NcclLibrary::open(const char* nccl, const char* cuda_runtime) {
  NcclLibrary lib;
  LibraryFile n(nccl);
  n.find("ncclGetVersion", lib.get_version);
  n.find("ncclGetErrorString", lib.error_text);
  n.find("ncclGetUniqueId", lib.groups.get_id);
  n.find("ncclCommInitRank", lib.groups.init_rank);
  n.find("ncclCommInitRankConfig", lib.groups.init_configured);
  n.find("ncclCommAbort", lib.groups.abort);
  n.find("ncclCommGetAsyncError", lib.groups.async_error);
  n.find("ncclGroupStart", lib.groups.begin_calls);
  n.find("ncclGroupEnd", lib.groups.end_calls);
  n.find("ncclAllReduce", lib.all_reduce);
  n.find("ncclAllGather", lib.all_gather);
  n.find("ncclReduceScatter", lib.reduce_scatter);
  n.find("ncclBroadcast", lib.broadcast);
  n.find("ncclSend", lib.send);
  n.find("ncclRecv", lib.receive);
  LibraryFile c(cuda_runtime);
  c.find("cudaSetDevice", lib.cuda.set_device);
  c.find("cudaStreamCreateWithFlags", lib.cuda.make_stream);
  c.find("cudaStreamQuery", lib.cuda.query_stream);
  c.find("cudaStreamDestroy", lib.cuda.drop_stream);
  c.find("cudaPointerGetAttributes", lib.cuda.pointer_attributes);
  c.find("cudaGetLastError", lib.cuda.clear_error);
  c.find("cudaEventCreateWithFlags", lib.cuda.events.make);
  c.find("cudaEventRecord", lib.cuda.events.record);
  c.find("cudaEventQuery", lib.cuda.events.query);
  c.find("cudaEventDestroy", lib.cuda.events.drop);
  c.find("cudaStreamWaitEvent", lib.cuda.events.hold_stream);
  c.find("cudaStreamIsCapturing", lib.cuda.events.capture_of);
  c.find("cudaMalloc", lib.blocks.take);
  c.find("cudaFree", lib.blocks.give);
  c.find("cudaMemcpyAsync", lib.blocks.copy);
  lib.why_not = n.why_not().empty() ? c.why_not() : n.why_not();
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
  if (cuda.pointer_attributes(attributes, pointer) != 0) {
    cuda.clear_error();
    return false;
  }
  const int kind = *reinterpret_cast<const int*>(attributes);
  return kind == nccl_device_memory;
}

} // namespace troupe::net
