// Attention of generation on GPUs.
#include "models/gpu/kernels/decode_append.hpp"
#include "models/gpu/kernels/decode_attend.hpp"
#include "models/gpu/kernels/launch.cuh"

namespace troupe::models::gpu {

template void launch(const DecodeAppend<float>&, std::int64_t, GpuStream);
template void launch(const DecodeAppend<Bf16>&, std::int64_t, GpuStream);
template void launch(const DecodeAttend<float>&, std::int64_t, GpuStream);
template void launch(const DecodeAttend<Bf16>&, std::int64_t, GpuStream);
template void launch(const JoinAttention<float>&, std::int64_t, GpuStream);
template void launch(const JoinAttention<Bf16>&, std::int64_t, GpuStream);

} // namespace troupe::models::gpu
