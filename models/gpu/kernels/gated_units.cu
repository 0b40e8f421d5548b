// MLP units on GPUs.
#include "models/gpu/kernels/gated_unit.hpp"
#include "models/gpu/kernels/launch.cuh"

namespace troupe::models::gpu {

#define TROUPE_UNIT(unit, type)                                                \
  template void launch(const GatedUnit<unit, type>&, std::int64_t, GpuStream); \
  template void launch(const GatedUnitBackward<unit, type>&, std::int64_t,     \
                       GpuStream)

TROUPE_UNIT(Silu, float);
TROUPE_UNIT(Silu, Bf16);
TROUPE_UNIT(Gelu, float);
TROUPE_UNIT(Gelu, Bf16);
TROUPE_UNIT(GeluTanh, float);
TROUPE_UNIT(GeluTanh, Bf16);

} // namespace troupe::models::gpu
