// A model as numbers that the cost model multiplies: widths, parameters and the
// bytes of a number, as stored and as multiplied.
#pragma once

#include "config/base/strategy.hpp"
#include "config/model/model_shape.hpp"
#include "plans/cost/layer_traffic.hpp"
#include "plans/cost/move_cost.hpp"
#include "plans/memory/stored_types.hpp"

namespace troupe::plans::internal {

/// Products of the head reach only this share of the matrix rate.
inline constexpr double head_efficiency = 0.8;
/// Drawing a token of a vocabulary: fp32 logits are sorted and summed.
inline constexpr double sampling_bytes_a_token = 24;

/// The part of a model that is updated, moved, offloaded.
struct TrainedWork {
  double parameters = 0;
  double backward = 2; ///< its products per product of forward
  UnitBytes moved;
  double sent_share = 1; ///< of what moves bring to other nodes
};

/// Experts of a layer; none: all are 0.
struct ExpertWork {
  double count = 0;
  double per_token = 0;
  double parameters = 0; ///< of one
  double width = 0;      ///< of one
};

/// Bytes of a number.
struct NumberBytes {
  double weight = 2;   ///< and gradient, as stored and moved
  double gathered = 2; ///< weight that z gathers for kernels
  double factor = 2;   ///< of the weights that generation multiplies
  double activation = 2;
  double cache = 2;
  double expert_row = 2;
};

struct ModelWork {
  double layers = 0, hidden = 0, kv_width = 0, attention_width = 0;
  double layer_parameters = 0, parameters = 0, head_width = 0;
  LayerTraffic traffic; ///< of a layer on one device
  ExpertWork experts;
  NumberBytes bytes;
  UnitBytes units;
  TrainedWork trained;

  ModelWork(const ModelShape& shape, DType products, const StoredTypes& stored);

  double touched_experts(double tokens) const;
  double used_parameters() const; ///< of a layer, per token
  double head_share() const;      ///< share of a pass's products
  double read_parameters(double tokens) const;
  /// Returns the experts of a device that `tokens` tokens touch.
  double device_experts(double tokens, const Strategy& strategy) const;
  /// Factor on a device's launches of a layer with one MLP.
  double launches(double tokens, const Strategy& strategy) const;
};

} // namespace troupe::plans::internal
