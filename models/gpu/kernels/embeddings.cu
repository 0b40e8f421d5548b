// Embeddings on GPUs.
#include "models/gpu/kernels/embed_tokens.hpp"
#include "models/gpu/kernels/launch.cuh"

namespace troupe::models::gpu {

template void launch(const EmbedTokens<float, float>&, std::int64_t, GpuStream);
template void launch(const EmbedTokens<float, Bf16>&, std::int64_t, GpuStream);
template void launch(const EmbedTokens<Bf16, float>&, std::int64_t, GpuStream);
template void launch(const EmbedTokens<Bf16, Bf16>&, std::int64_t, GpuStream);

} // namespace troupe::models::gpu
