// Choices of experts on GPUs, their order, what experts compute beside
// products, and gradients.
#include "models/gpu/kernels/choose_experts.hpp"
#include "models/gpu/kernels/expert_unit_backward.hpp"
#include "models/gpu/kernels/join_experts.hpp"
#include "models/gpu/kernels/launch.cuh"
#include "models/gpu/kernels/load_excess.hpp"
#include "models/gpu/kernels/route_backward.hpp"
#include "models/gpu/kernels/sort_experts.hpp"

namespace troupe::models::gpu {

template void launch(const ChooseExperts&, std::int64_t, GpuStream);
template void launch(const SortExperts&, std::int64_t, GpuStream);
template void launch(const LoadExcess&, std::int64_t, GpuStream);
template void launch(const RouteBackward&, std::int64_t, GpuStream);
template void launch(const JoinExperts<float, float>&, std::int64_t, GpuStream);
template void launch(const JoinExperts<Bf16, float>&, std::int64_t, GpuStream);
template void launch(const JoinExperts<Bf16, Bf16>&, std::int64_t, GpuStream);

#define TROUPE_EXPERT_UNIT(unit)                                               \
  template void launch(const ExpertUnitBackward<unit, float>&, std::int64_t,   \
                       GpuStream);                                             \
  template void launch(const ExpertUnitBackward<unit, Bf16>&, std::int64_t,    \
                       GpuStream)

TROUPE_EXPERT_UNIT(Silu);
TROUPE_EXPERT_UNIT(Gelu);
TROUPE_EXPERT_UNIT(GeluTanh);

} // namespace troupe::models::gpu
