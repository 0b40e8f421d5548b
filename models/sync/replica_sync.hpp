// Work that the devices of a replica share for weights and gradients besides
// forward and backward of a call: sum gradients over owners and dp ranks, and
// if weights are sharded, gather and free them. One implementation for dp ranks
// that hold all their weights (models/sync/gradient_sync.hpp), one for z3
// (models/sync/zero3_flow.hpp). As a LayerGate it is notified of the layers
// that run.
#pragma once

#include "models/parallel/run_context.hpp"
#include "models/transformer/transformer.hpp"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

namespace troupe::models {

/// Who reads weights next.
enum class WeightReader : std::uint8_t {
  kernels, ///< of another optimizer step
  all,     ///< that may read them between calls: moves, files, kernels
};

class ReplicaSync : public LayerGate {
public:
  /// Begins a call, on all devices of the replica; the previous one may have
  /// been aborted.
  virtual void begin(const Groups& groups) = 0;

  /// Returns the passes of each optimizer step that this dp rank takes part in,
  /// of which `own` have samples of its own and come first.
  virtual std::vector<std::int64_t> passes(std::vector<std::int64_t> own) {
    return own;
  }
  /// Returns true if one more pass of inference follows: with samples here
  /// (`own`), or because other dp ranks have some. A pass without samples here
  /// runs the stack on no tokens.
  virtual bool another_pass(bool own) {
    return own;
  }
  /// Announces the last backward of an optimizer step.
  virtual void last_backward() {}
  /// Returns when every owner has the gradient of what it holds. All devices
  /// call it once per optimizer step, with or without backward.
  virtual void finish() = 0;
  /// Announces that the optimizer changed the weights that this device owns.
  virtual void weights_changed() = 0;
  /// Gathers from other devices what the reader does not find up to date. All
  /// devices call it before each optimizer step, and for all at the end.
  virtual void gather_weights(WeightReader /*reader*/) {}
  /// Ends a call of training, whose last kernel the host has waited for. Throws
  /// FailureError if a group failed meanwhile.
  virtual void end() {}
  /// Returns the sum of what the devices count, each for its first-owned boxes.
  virtual double sum_over_parts(double mine) = 0;
};

/// Returns the most passes of any dp rank, for each optimizer step.
std::vector<std::int64_t> most_passes(std::vector<std::int64_t> own,
                                      net::Collectives& dp);
/// Returns true if any dp rank wants another pass.
bool any_wants(bool own, net::Collectives& dp);
/// Sums over some groups in turn; null groups are skipped.
double sum_over_groups(
  double mine, std::initializer_list<std::shared_ptr<net::Collectives>> groups);

} // namespace troupe::models
