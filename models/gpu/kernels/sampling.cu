// Sampling on GPUs.
#include "models/gpu/kernels/draw_token.hpp"
#include "models/gpu/kernels/launch.cuh"

namespace troupe::models::gpu {

template void launch(const DrawToken<float>&, std::int64_t, GpuStream);
template void launch(const DrawToken<Bf16>&, std::int64_t, GpuStream);

} // namespace troupe::models::gpu
