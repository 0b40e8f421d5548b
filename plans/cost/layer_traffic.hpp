// The least bytes that a GPU reads and writes for a layer and for the head, in
// torchtitan's form: bf16 weights and activations, flash attention, fused
// norms, rotation and MLP units, nothing recomputed. Real traffic is a multiple
// of it (gpu_counts.hpp). Pure arithmetic.
#pragma once

#include "config/base/strategy.hpp"
#include "config/model/model_shape.hpp"

namespace troupe::plans {

inline constexpr double bf16_bytes = 2;

/// Widths of a layer on one device, in numbers per token.
struct LayerTraffic {
  double hidden = 0;
  double stream = 0; ///< of norms and residual sums
  double queries = 0;
  double keys = 0;   ///< the same for values
  double inner = 0;  ///< of the MLP, or of what a token's experts have together
  double gates = 2;  ///< products before the unit: 2 with a gate
  double routed = 0; ///< rows of experts that are gathered and added

  explicit LayerTraffic(const ModelShape& shape);
  /// Returns those of a device under this strategy.
  LayerTraffic under(const Strategy& strategy) const;

  /// Returns the numbers that a token's products read and write, forward.
  double products() const;
  /// Returns all of its forward pass, but for attention's keys and values.
  double forward() const;
  /// Returns those of its backward pass: two products for each one, gradients
  /// of the norms (dy, x, dx and the stream's gradient), of the unit (its
  /// inputs and d in, their gradients and the product out), of the rotation and
  /// of attention (q, k, v, its output and d of it in, three gradients out).
  double backward() const;
};

/// Numbers of a layer's weights: matrices, those of all experts among them, and
/// two norms.
double layer_weights(const ModelShape& shape);

/// Returns the bytes of a decode step: `weights`, and for each sequence its
/// keys and values once, activations once between kernels.
double least_decode_bytes(const LayerTraffic& layer, double weights,
                          double sequences, double keys);
double least_forward_bytes(const LayerTraffic& layer, double weights,
                           double tokens);
/// Returns those of a backward pass: weights are read once, and their gradients
/// written once in bf16 (FSDP keeps fp32 masters, which a micro-batch does not
/// touch).
double least_backward_bytes(const LayerTraffic& layer, double weights,
                            double tokens);
/// Returns the bytes of a pass of the head: rows of embedding and stream, norm,
/// weights once, logits of `vocab` columns written and read once in fp32.
double least_rest_bytes(double hidden, double vocab, double rows);

} // namespace troupe::plans
