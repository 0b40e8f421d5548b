// Functions of cuBLAS that libtorch names and this stand-in does not serve:
// complex numbers and solvers. Each refuses, in words. Their header is not
// included, because the arguments do not matter.
#include <cstdio>

namespace {

/// CUBLAS_STATUS_NOT_SUPPORTED.
constexpr int refused = 15;

int refuse(const char* name) {
  std::fprintf(stderr, "standin: %s is not served\n", name);
  return refused;
}

} // namespace

#define TROUPE_REFUSE(name)                                                    \
  extern "C" int name() {                                                      \
    return refuse(#name);                                                      \
  }
#define TROUPE_REFUSE_SOLVERS(letter)                                          \
  TROUPE_REFUSE(cublas##letter##gelsBatched)                                   \
  TROUPE_REFUSE(cublas##letter##geqrfBatched)                                  \
  TROUPE_REFUSE(cublas##letter##getrfBatched)                                  \
  TROUPE_REFUSE(cublas##letter##getrsBatched)                                  \
  TROUPE_REFUSE(cublas##letter##trsmBatched)                                   \
  TROUPE_REFUSE(cublas##letter##trsm_v2)
#define TROUPE_REFUSE_COMPLEX(letter)                                          \
  TROUPE_REFUSE(cublas##letter##dotc_v2)                                       \
  TROUPE_REFUSE(cublas##letter##dotu_v2)                                       \
  TROUPE_REFUSE(cublas##letter##gemm_v2)                                       \
  TROUPE_REFUSE(cublas##letter##gemmStridedBatched)                            \
  TROUPE_REFUSE(cublas##letter##gemv_v2)

TROUPE_REFUSE_SOLVERS(S)
TROUPE_REFUSE_SOLVERS(D)
TROUPE_REFUSE_SOLVERS(C)
TROUPE_REFUSE_SOLVERS(Z)
TROUPE_REFUSE_COMPLEX(C)
TROUPE_REFUSE_COMPLEX(Z)
TROUPE_REFUSE(cublasDotEx)
