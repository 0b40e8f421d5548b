// The cost of a move in closed form: bytes by link from the two layouts and
// meshes, without planning a single transfer. Each target device receives what
// it lacks from the nearest owners (same device, same node, another node), as
// in move_plan; a test holds the two within 5 %. The best plans of a search are
// costed by move_plan itself.
#pragma once

#include "config/base/dtype.hpp"
#include "config/model/model_shape.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/weights/stage_layers.hpp"

#include <cstdint>
#include <vector>

namespace troupe::plans {

struct Hardware;

struct MoveBytes {
  double device = 0; ///< copied inside a device
  double intra = 0;  ///< between devices of a node
  double inter = 0;  ///< between nodes
  /// Bytes of the device that receives or sends most over such links.
  double busiest_intra = 0;
  double busiest_inter = 0;
};

/// Bytes of the units of a model that a pipeline assigns to stages: embedding,
/// layers, final norm with head.
struct UnitBytes {
  std::vector<double> units = {};
  bool tied = false; ///< the last stage holds the embedding too
  UnitCosts costs;   ///< of the whole model: by these its stages are cut
};
/// Returns those of a model's weights, without adapters.
UnitBytes unit_bytes(const ModelShape& shape, DType dtype);
/// Returns those of the parameters that moves copy (trained_parameters).
UnitBytes moved_bytes(const ModelShape& shape, DType dtype);

/// Returns the bytes of a move from a replica at `source` to one at `target`.
MoveBytes move_bytes(const UnitBytes& model, const Placement& source,
                     const Placement& target, const Cluster& cluster);

/// Returns the same, counted over the transfers of move_plan.
MoveBytes planned_move_bytes(const ModelShape& shape, DType dtype,
                             const Placement& source, const Placement& target,
                             const Cluster& cluster);

/// Returns the bytes that servers of a call take at an update: all of what is
/// trained in fp32, for each dp rank, on its own host.
MoveBytes update_bytes(const ModelShape& shape, const Strategy& strategy);

/// Returns the model with runs of neighbouring experts joined that `from` and
/// `to` deal together: a move between the two sends the same bytes but for the
/// router's, and is planned as many times faster.
ModelShape with_joined_experts(ModelShape shape, const Strategy& from,
                               const Strategy& to);

/// Returns the seconds of such a move: its start and the busiest device of each
/// link. `sent_share` of the bytes between nodes are sent.
double move_seconds(const MoveBytes& bytes, const Hardware& hardware,
                    double sent_share = 1);

} // namespace troupe::plans
