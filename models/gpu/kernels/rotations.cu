// Rotary positions on GPUs.
#include "models/gpu/kernels/launch.cuh"
#include "models/gpu/kernels/rotation.hpp"

namespace troupe::models::gpu {

template void launch(const Rotate<float>&, std::int64_t, GpuStream);
template void launch(const Rotate<Bf16>&, std::int64_t, GpuStream);

} // namespace troupe::models::gpu
