// Norms on GPUs.
#include "models/gpu/kernels/add_rows.hpp"
#include "models/gpu/kernels/launch.cuh"
#include "models/gpu/kernels/qk_norm.hpp"
#include "models/gpu/kernels/rms_norm.hpp"
#include "models/gpu/kernels/rms_norm_backward.hpp"

namespace troupe::models::gpu {

template void launch(const RmsNorm<float>&, std::int64_t, GpuStream);
template void launch(const RmsNorm<Bf16>&, std::int64_t, GpuStream);
template void launch(const RmsNormBackward<float>&, std::int64_t, GpuStream);
template void launch(const RmsNormBackward<Bf16>&, std::int64_t, GpuStream);
template void launch(const HeadNorm<float>&, std::int64_t, GpuStream);
template void launch(const HeadNorm<Bf16>&, std::int64_t, GpuStream);
template void launch(const HeadNormBackward<float>&, std::int64_t, GpuStream);
template void launch(const HeadNormBackward<Bf16>&, std::int64_t, GpuStream);
template void launch(const AddRows&, std::int64_t, GpuStream);

} // namespace troupe::models::gpu
