// The optimizer on GPUs.
#include "models/gpu/kernels/adamw_step.hpp"
#include "models/gpu/kernels/launch.cuh"
#include "models/gpu/kernels/squared_norm.hpp"

namespace troupe::models::gpu {

template void launch(const AdamwStep&, std::int64_t, GpuStream);
template void launch(const RunSquares&, std::int64_t, GpuStream);
template void launch(const JoinSquares&, std::int64_t, GpuStream);

} // namespace troupe::models::gpu
