// What a move costs, in closed form: bytes by link from the two layouts and
// meshes, without planning a single transfer. Each device of the target takes
// what it lacks from the nearest owners (same device, same node, another node),
// as move_plan does; a test holds the two within 5 %. Finalists of a search are
// counted by move_plan itself.
#pragma once

#include "config/dtype.hpp"
#include "config/model_shape.hpp"
#include "plans/execution_plan.hpp"
#include "plans/stage_layers.hpp"

#include <cstdint>
#include <vector>

namespace troupe::plans {

struct Hardware;

struct MoveBytes {
  double device = 0; ///< stay where they are: copies inside a device
  double intra = 0;  ///< between devices of a node
  double inter = 0;  ///< between nodes
  /// Of the device that receives or sends most over such links.
  double busiest_intra = 0;
  double busiest_inter = 0;
};

/// Bytes of a model's units that pipelines deal out: embedding, layers, final
/// norm with head.
struct UnitBytes {
  std::vector<double> units = {};
  bool tied = false; ///< the last stage holds the embedding too
};
UnitBytes unit_bytes(const ModelShape& shape, DType dtype);
UnitCosts costs_of(const UnitBytes& model);

/// From a replica at `source` to one at `target`.
MoveBytes move_bytes(const UnitBytes& model, const Placement& source,
                     const Placement& target, const Cluster& cluster);

/// The same, counted over the transfers of move_plan.
MoveBytes planned_move_bytes(const ModelShape& shape, DType dtype,
                             const Placement& source, const Placement& target,
                             const Cluster& cluster);

/// Seconds of such a move: its start and the busiest device of each link.
double move_seconds(const MoveBytes& bytes, const Hardware& hardware);

} // namespace troupe::plans
