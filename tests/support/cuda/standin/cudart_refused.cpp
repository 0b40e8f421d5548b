// Functions of CUDA's runtime that libtorch names and this stand-in does not
// serve: each refuses, in words. Their headers are not included, because the
// arguments do not matter.
#include <cstdio>

namespace {

/// cudaErrorNotSupported.
constexpr int refused = 801;

int refuse(const char* name) {
  std::fprintf(stderr, "standin: %s is not served\n", name);
  return refused;
}

} // namespace

#define TROUPE_REFUSE(name)                                                    \
  extern "C" int name() {                                                      \
    return refuse(#name);                                                      \
  }

TROUPE_REFUSE(cudaGetSymbolAddress)
TROUPE_REFUSE(cudaMemcpyToSymbol)
TROUPE_REFUSE(cudaIpcGetEventHandle)
TROUPE_REFUSE(cudaIpcOpenEventHandle)
TROUPE_REFUSE(cudaMemPoolGetAttribute)
TROUPE_REFUSE(cudaMemPoolSetAccess)
TROUPE_REFUSE(cudaMemPoolSetAttribute)
TROUPE_REFUSE(cudaMemPoolTrimTo)
TROUPE_REFUSE(cudaDeviceGetDefaultMemPool)
TROUPE_REFUSE(cudaGraphNodeGetDependencies)
