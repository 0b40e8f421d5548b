// Statistics and gradients of logit rows on GPUs.
#include "models/gpu/kernels/launch.cuh"
#include "models/gpu/kernels/logit_gradient.hpp"
#include "models/gpu/kernels/logit_parts.hpp"

namespace troupe::models::gpu {

template void launch(const LogitParts<float>&, std::int64_t, GpuStream);
template void launch(const LogitParts<Bf16>&, std::int64_t, GpuStream);
template void launch(const JoinLogitParts&, std::int64_t, GpuStream);
template void launch(const LogitGradient<float>&, std::int64_t, GpuStream);
template void launch(const LogitGradient<Bf16>&, std::int64_t, GpuStream);

} // namespace troupe::models::gpu
