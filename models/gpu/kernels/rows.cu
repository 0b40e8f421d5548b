// Listed rows on GPUs.
#include "models/gpu/kernels/launch.cuh"
#include "models/gpu/kernels/scatter_rows.hpp"

namespace troupe::models::gpu {

template void launch(const ScatterRows<float, float>&, std::int64_t, GpuStream);
template void launch(const ScatterRows<Bf16, float>&, std::int64_t, GpuStream);
template void launch(const ScatterRows<Bf16, Bf16>&, std::int64_t, GpuStream);

} // namespace troupe::models::gpu
