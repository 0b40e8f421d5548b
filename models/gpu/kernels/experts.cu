// Choices of experts on GPUs.
#include "models/gpu/kernels/choose_experts.hpp"
#include "models/gpu/kernels/launch.cuh"

namespace troupe::models::gpu {

template void launch(const ChooseExperts&, std::int64_t, GpuStream);

} // namespace troupe::models::gpu
