// The types of numbers in a device's memory: one rule for what calls take, the
// cache, what devices send each other and what all of it costs. It follows from
// who computes and from the dtype of products, as models/kernels/backend.hpp
// (`Backend::storage`) does in a run.
#pragma once

#include "config/base/dtype.hpp"
#include "plans/workflow/frozen_roles.hpp"

#include <cstdint>
#include <optional>

namespace troupe::plans {

enum class StorageRule : std::uint8_t {
  host,      ///< our CPU kernels: fp32, whatever products are of
  gpu,       ///< our GPUs: activations and cache as products are, fp32 beside
  published, ///< published systems on GPUs: everything as products are
};

struct StoredTypes {
  DType weights = DType::f32;  ///< and their gradients; as moved
  DType gathered = DType::f32; ///< weights that z gathers for kernels
  /// And their gradients, sums over tensor peers, messages between stages.
  DType activations = DType::f32;
  DType cache = DType::f32;
  DType statistics = DType::f32;  ///< of norms and losses; logits
  DType expert_rows = DType::f32; ///< as sent to experts of other dp ranks

  bool operator==(const StoredTypes&) const = default;
};

constexpr StoredTypes stored_types(StorageRule rule, DType products) {
  switch (rule) {
  case StorageRule::published:
    return {products, products, products, products, products, products};
  case StorageRule::gpu: // models/transformer/moe.cpp sends rows in fp32
    return {.gathered = products, .activations = products, .cache = products};
  case StorageRule::host:
    break;
  }
  return {};
}

/// A role's planes of weights.
struct WeightPlanes {
  DType stored = DType::f32;
  /// A second one, which products read: of a GPU of ours, if they are of bf16.
  std::optional<DType> rounded = {};
  /// Only the second one is stored, and in fp32 what products do not read: of
  /// frozen weights (plans/workflow/frozen_roles.hpp), unless `needs_masters`.
  bool has_no_masters = false;

  bool operator==(const WeightPlanes&) const = default;
};

/// Returns the planes of a role whose products are of that type.
constexpr WeightPlanes weight_planes(StorageRule rule, DType products,
                                     RoleWeights weights
                                     = RoleWeights::changing) {
  const auto stored = stored_types(rule, products).weights;
  if (rule != StorageRule::gpu || products == stored)
    return {stored};
  return {stored, products, weights == RoleWeights::frozen};
}

} // namespace troupe::plans
