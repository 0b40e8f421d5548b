// How the stages of a pipeline share a model's layers: runs of layers whose
// slowest stage is as fast as can be. What a stage costs is the parameters that
// its products read; the head is a cost of the last stage, the embedding, where
// rows are looked up, of none.
#pragma once

#include "config/model_shape.hpp"

#include <cstdint>
#include <span>

namespace troupe::plans {

/// What one unit of a model costs its stage: parameters that products read.
struct UnitCosts {
  double layer = 0;  ///< of one
  double head = 0;   ///< and final norm
  bool tied = false; ///< the head is the embedding
};
/// Of a model's parameters, whose layers are alike.
UnitCosts unit_costs(std::span<const ParameterShape> parameters);
UnitCosts unit_costs(const ModelShape& shape);

/// Runs of layers, in order, the last one with the head.
class StageLayers {
public:
  /// At least a layer for each stage: 1 <= num_stages <= num_layers.
  StageLayers(std::uint32_t num_layers, std::uint32_t num_stages,
              const UnitCosts& costs);

  /// Of a layer below num_layers.
  std::uint32_t stage_of(std::uint32_t layer) const;
  std::uint32_t count(std::uint32_t stage) const;
  std::uint32_t last() const { ///< layers of the last stage
    return last_;
  }
  /// Layers of the stage before it that has most; of a single stage its own.
  std::uint32_t most_before() const;

private:
  std::uint32_t before_ = 0; ///< stages in front of the last
  std::uint32_t shared_ = 0; ///< their layers
  std::uint32_t last_ = 0;
};

} // namespace troupe::plans
