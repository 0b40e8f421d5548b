// Parts of decoder.hpp for layers with experts: their packed weights, and rows
// of a pass on their way through them.
#pragma once

#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/prepared_weight.hpp"
#include "models/kernels/typed_block.hpp"
#include "models/transformer/device_dispatch.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::models {

struct PackedExpert {
  std::unique_ptr<PreparedWeight> gate_up; ///< [2I, H]
  std::unique_ptr<PreparedWeight> down;    ///< [H, I]
};

/// The experts of a layer.
struct PackedExperts {
  std::unique_ptr<PreparedWeight> router; ///< [E, H]
  std::vector<PackedExpert> single;       ///< those of this device
  std::optional<ExpertPlaces> places;     ///< if the device dispatches
  std::int64_t first_column = 0;          ///< in the record of a row
};

struct ExpertBuffers {
  TypedBlock rows_RH;      ///< of one expert, input and output
  AlignedFloats logits_RE; ///< of the router
  AlignedFloats routing;   ///< of rows that the device dispatches
  bool is_recorded = false;
  std::vector<std::int32_t> chosen_RW; ///< of the last pass, if recorded
};

} // namespace troupe::models
