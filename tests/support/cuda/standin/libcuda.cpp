// The driver's functions that libtorch names: contexts are there, and the rest
// is refused by name. Their header is not included: it would rename some of
// them, and most arguments do not matter.
#include <cstdint>
#include <cstdio>

namespace {

/// CUDA_ERROR_NOT_SUPPORTED.
constexpr int refused = 801;
/// Stands for a context.
int context;

int refuse(const char* name) {
  std::fprintf(stderr, "standin: %s is not served\n", name);
  return refused;
}

} // namespace

#define TROUPE_REFUSE(name)                                                    \
  extern "C" int name() {                                                      \
    return refuse(#name);                                                      \
  }

extern "C" {

int cuInit(unsigned) {
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuCtxGetCurrent(void** current) {
  *current = &context;
  return 0;
}
int cuCtxSetCurrent(void*) {
  return 0;
}
int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* is_active) {
  *flags = 0;
  *is_active = 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** made, int) {
  *made = &context;
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "error of the stand-in for CUDA's driver";
  return 0;
}
}

TROUPE_REFUSE(cuDeviceGetAttribute)
TROUPE_REFUSE(cuFuncGetAttribute)
TROUPE_REFUSE(cuFuncSetAttribute)
TROUPE_REFUSE(cuFuncSetCacheConfig)
TROUPE_REFUSE(cuLaunchCooperativeKernel)
TROUPE_REFUSE(cuLaunchKernel)
TROUPE_REFUSE(cuLinkAddData_v2)
TROUPE_REFUSE(cuLinkComplete)
TROUPE_REFUSE(cuLinkCreate_v2)
TROUPE_REFUSE(cuModuleGetFunction)
TROUPE_REFUSE(cuModuleLoad)
TROUPE_REFUSE(cuModuleLoadData)
TROUPE_REFUSE(cuModuleLoadDataEx)
TROUPE_REFUSE(cuModuleUnload)
TROUPE_REFUSE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
TROUPE_REFUSE(cuPointerGetAttribute)
TROUPE_REFUSE(cuTensorMapEncodeTiled)
