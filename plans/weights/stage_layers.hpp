// How the stages of a pipeline share a model's layers: runs of layers chosen so
// that the slowest stage is as fast as possible. The cost of a stage is the
// number of parameters that its products read; the head counts for the last
// stage, the embedding (a row lookup) for none.
#pragma once

#include "config/model/model_shape.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

/// Cost of one unit of a model for its stage: parameters that products read.
struct UnitCosts {
  double layer = 0;  ///< per layer
  double head = 0;   ///< with the final norm
  bool tied = false; ///< the head is the embedding
};
/// Returns the costs of a model's parameters, whose layers are alike.
UnitCosts unit_costs(std::span<const ParameterShape> parameters);
UnitCosts unit_costs(const ModelShape& shape);

/// Parameters to lay out, and how stages share the layers of their model.
struct StagedParameters {
  std::span<const ParameterShape> list; ///< the caller's
  std::int32_t num_layers = 0;
  std::int32_t num_experts = 0; ///< of a layer that has some
  UnitCosts costs;

  /// Takes the parameters of a whole model.
  StagedParameters(std::span<const ParameterShape> all);
  StagedParameters(const std::vector<ParameterShape>& all);
  /// Takes some of a model's parameters, such as its adapters: stages are cut
  /// by the whole model.
  StagedParameters(std::span<const ParameterShape> some,
                   const ModelShape& model);

  const ParameterShape& operator[](std::uint32_t index) const {
    return list[index];
  }
};

/// Runs of layers, in order; the last run is followed by the head.
class StageLayers {
public:
  /// Assigns at least one layer to each stage: 1 <= num_stages <= num_layers.
  StageLayers(std::uint32_t num_layers, std::uint32_t num_stages,
              const UnitCosts& costs);

  /// Returns the stage of a layer below num_layers.
  std::uint32_t stage_of(std::uint32_t layer) const;
  std::uint32_t count(std::uint32_t stage) const;
  std::uint32_t last() const { ///< layers of the last stage
    return last_;
  }
  /// Returns the layers of the largest stage before the last; with a single
  /// stage, its own.
  std::uint32_t most_before() const;

private:
  std::uint32_t before_ = 0; ///< number of stages before the last
  std::uint32_t shared_ = 0; ///< layers of those stages
  std::uint32_t last_ = 0;
};

} // namespace troupe::plans
