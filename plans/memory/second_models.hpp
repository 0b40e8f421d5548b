// Memory of the models that speak in a call's conversations beside its own
// (plans/workflow/second_roles.hpp). Each has a cache for as many responses at
// once as the call's own model, and buffers of its own, since all generate at
// the same time.
#pragma once

#include "plans/memory/call_memory.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::plans {

class SecondModels {
public:
  /// None.
  SecondModels() = default;
  /// Those of a call; keeps references to `shapes`. A role without a shape
  /// counts as nothing, one without a dtype (of its products) as f32.
  SecondModels(const Call& call,
               const std::map<std::string, ModelShape>& shapes,
               const std::map<std::string, DType>& dtypes);

  /// Returns their bytes besides planes on each device of one stage.
  std::uint64_t active_bytes(const Placement& placement,
                             const BatchSizes& sizes,
                             std::uint32_t stage) const;
  /// Returns the bytes on the fullest device.
  std::uint64_t active_bytes(const Placement& placement,
                             const BatchSizes& sizes) const;

private:
  struct Model {
    const ModelShape* shape;
    DType dtype;
  };
  std::vector<Model> models_;
};

} // namespace troupe::plans
