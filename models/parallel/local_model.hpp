// The part of a model that one coordinate of a strategy holds, derived from
// plans::Layout: its parameters with their local sizes, their position in the
// whole model, and the other owners. Forward and backward run on `local`
// without knowing why its numbers are smaller. Of a model with adapters these
// are the adapters; its frozen weights are a part of their own, which computes
// (models/engine/frozen_weights.hpp).
//
// The owners of a box are the group over which its gradient is summed; norms
// count the box at its first owner only.
#pragma once

#include "config/base/strategy.hpp"
#include "config/model/model_shape.hpp"
#include "plans/weights/gather_buffers.hpp"
#include "plans/weights/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::models {

/// One local parameter. Replicas over dp do not count as owners: all are alike.
struct PartBox {
  plans::Box box;           ///< in the whole parameter, before z cuts it
  bool is_dealt = false;    ///< an expert that other dp ranks do not hold
  bool over_tensor = false; ///< tp ranks hold the same box
  bool over_stages = false; ///< another pipeline stage holds it too
  bool first_owner = true;  ///< no owner before this coordinate

  /// Returns the offset at which an inner box, a run of its elements, begins.
  std::int64_t place_of(const plans::Box& inner) const {
    return (inner.row0 - box.row0) * (box.col1 - box.col0) + inner.col0
           - box.col0;
  }
};

struct LocalModel {
  /// Derives the part. Throws PlanError if the model does not fit the strategy.
  LocalModel(const ModelShape& model, const Strategy& degrees,
             const Coordinate& coordinate);
  /// Returns the entry of `boxes` of a parameter that is held here.
  const PartBox& owner(std::uint32_t parameter) const;
  /// Returns whether this device counts the box, so that the dp ranks which
  /// have all experts between them count every element once.
  bool counts(const PartBox& box) const {
    return box.first_owner
           && (box.is_dealt || where.dp % strategy.expert_group_dp() == 0);
  }
  std::size_t box_index(const PartBox& box) const {
    return static_cast<std::size_t>(&box - boxes.data());
  }

  /// Returns `parameters` as layouts take them.
  plans::StagedParameters staged() const {
    return {parameters, whole};
  }
  bool first_stage() const {
    return where.pp == 0;
  }
  bool last_stage() const {
    return where.pp + 1 == strategy.pp;
  }

  ModelShape whole;
  Strategy strategy;
  Coordinate where;
  std::vector<ParameterShape> parameters; ///< trained_parameters(whole)
  ModelShape local;           ///< local heads, intermediate size and layers
  std::vector<PartBox> boxes; ///< in model order
  std::vector<ParameterShape> local_parameters; ///< of each box, with local
                                                ///< sizes
  /// Boxes of the optimizer's planes: those above, or with z the parts of them
  /// that this dp rank updates.
  plans::Shard optimizer;
  /// Boxes of the weight plane: those above, or with z3 this dp rank's parts.
  plans::Shard held;
  /// The units of `boxes`, and with z3 their place in the gather buffers.
  plans::GatherBuffers windows;
  std::int64_t first_layer = 0; ///< in the whole model
  std::int64_t first_token = 0; ///< id of the vocabulary's first row here
};

} // namespace troupe::models
