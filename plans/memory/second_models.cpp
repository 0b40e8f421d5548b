#include "plans/memory/second_models.hpp"

#include <algorithm>

namespace troupe::plans {

SecondModels::SecondModels(const Call& call,
                           const std::map<std::string, ModelShape>& shapes,
                           const std::map<std::string, DType>& dtypes) {
  for (const auto& role : call.by.with)
    if (const auto shape = shapes.find(role); shape != shapes.end()) {
      const auto dtype = dtypes.find(role);
      models_.push_back(
        {.shape = &shape->second,
         .dtype = dtype == dtypes.end() ? DType::f32 : dtype->second});
    }
}

std::uint64_t SecondModels::active_bytes(const Placement& placement,
                                         const BatchSizes& sizes,
                                         std::uint32_t stage) const {
  std::uint64_t bytes = 0;
  for (const auto& model : models_)
    bytes += plans::active_bytes(CallKind::generate, *model.shape, model.dtype,
                                 placement, sizes, stage);
  return bytes;
}

std::uint64_t SecondModels::active_bytes(const Placement& placement,
                                         const BatchSizes& sizes) const {
  return std::max(active_bytes(placement, sizes, 0),
                  active_bytes(placement, sizes, placement.strategy.pp - 1));
}

} // namespace troupe::plans
