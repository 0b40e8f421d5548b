// What one coordinate of a strategy holds of a model, derived from
// plans::Layout: its parameters with the sizes they have here, where they stand
// in the whole model, and who else holds them. Forward and backward run on
// `local` without knowing why its numbers are smaller.
//
// The owners of a box are the group over which its gradient is summed; norms
// count the box at its first owner alone (DESIGN 5).
#pragma once

#include "config/model_shape.hpp"
#include "config/strategy.hpp"
#include "plans/layout.hpp"
#include "plans/unit_windows.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::models {

/// One parameter here. Copies over dp are no owners: all of them are alike.
struct PartBox {
  plans::Box box;           ///< in the whole parameter, before z cuts it
  bool over_tensor = false; ///< tensor peers hold the same box
  bool over_stages = false; ///< so does another pipeline stage
  bool first_owner = true;  ///< none before this coordinate

  /// Where a part of it, a run of its elements, begins.
  std::int64_t place_of(const plans::Box& inner) const {
    return (inner.row0 - box.row0) * (box.col1 - box.col0) + inner.col0
           - box.col0;
  }
};

struct ModelPart {
  /// Throws PlanError where the model does not fit the strategy.
  ModelPart(const ModelShape& model, const Strategy& degrees,
            const Coordinate& coordinate);
  /// The entry of `boxes` of a parameter that is here.
  const PartBox& owner(std::uint32_t parameter) const;
  std::size_t box_index(const PartBox& box) const {
    return static_cast<std::size_t>(&box - boxes.data());
  }

  ModelShape whole;
  Strategy strategy;
  Coordinate where;
  std::vector<ParameterShape> parameters; ///< of the whole model
  ModelShape local;           ///< heads, intermediate and layers as here
  std::vector<PartBox> boxes; ///< in model order
  std::vector<ParameterShape> local_parameters; ///< of each box, sizes as here
  /// Boxes of the optimizer's planes: those above, or with z the parts of them
  /// that this copy updates.
  plans::Shard optimizer;
  /// Boxes of the weights' plane: those above, or with z3 this copy's parts.
  plans::Shard held;
  /// The units of `boxes`, and with z3 where computing finds them.
  plans::UnitWindows windows;
  std::int64_t first_layer = 0; ///< of the whole model's
  std::int64_t first_token = 0; ///< id of the vocabulary's first row here
  bool first_stage = true;
  bool last_stage = true;
};

} // namespace troupe::models
