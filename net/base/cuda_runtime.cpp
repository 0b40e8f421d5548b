#include "net/base/cuda_runtime.hpp"

#include "net/base/library_file.hpp"

namespace troupe::net {

CudaRuntime CudaRuntime::open(const char* file) {
  CudaRuntime cuda;
  LibraryFile library(file);
  library.find("cudaDriverGetVersion", cuda.devices.driver_version);
  library.find("cudaGetDeviceCount", cuda.devices.count);
  library.find("cudaGetDeviceProperties", cuda.devices.properties);
  library.find("cudaDeviceGetAttribute", cuda.devices.attribute);
  library.find("cudaGetDevice", cuda.get_device);
  library.find("cudaSetDevice", cuda.set_device);
  library.find("cudaMemGetInfo", cuda.memory_info);
  library.find("cudaMemsetAsync", cuda.copies.set_bytes);
  library.find("cudaMemcpyAsync", cuda.copies.copy_bytes);
  library.find("cudaMemcpy2DAsync", cuda.copies.copy_rows);
  library.find("cudaIpcGetMemHandle", cuda.ipc.share);
  library.find("cudaIpcOpenMemHandle", cuda.ipc.open);
  library.find("cudaIpcCloseMemHandle", cuda.ipc.close);
  library.find("cudaGetDriverEntryPointByVersion", cuda.ipc.driver_function);
  library.find("cudaStreamSynchronize", cuda.wait_stream);
  library.find("cudaGetLastError", cuda.clear_error);
  library.find("cudaGetErrorString", cuda.error_text);
  cuda.why_not = library.why_not();
  return cuda;
}

const CudaRuntime& CudaRuntime::machine() {
#ifdef TROUPE_CUDA_BUILD
  static const CudaRuntime found = open("libcudart.so.13");
#else
  static const CudaRuntime found = [] {
    CudaRuntime none;
    none.why_not = "this build has no CUDA (cmake --preset cuda)";
    return none;
  }();
#endif
  return found;
}

} // namespace troupe::net
