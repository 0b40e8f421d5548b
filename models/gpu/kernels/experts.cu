// Choices of experts on GPUs, and their gradients.
#include "models/gpu/kernels/choose_experts.hpp"
#include "models/gpu/kernels/launch.cuh"
#include "models/gpu/kernels/route_backward.hpp"

namespace troupe::models::gpu {

template void launch(const ChooseExperts&, std::int64_t, GpuStream);
template void launch(const RouteBackward&, std::int64_t, GpuStream);

} // namespace troupe::models::gpu
