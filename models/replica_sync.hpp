// What the devices of a replica do together about weights and gradients, beside
// forward and backward of a call: sum gradients over owners and copies, and
// where weights are sharded, bring them and take them away. One kind for copies
// that hold all their weights (models/gradient_sync.hpp), one for z3
// (models/unit_flow.hpp). As a LayerGate it learns what is computed.
#pragma once

#include "models/run_context.hpp"
#include "models/transformer.hpp"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

namespace troupe::models {

class ReplicaSync : public LayerGate {
public:
  /// A call begins, on all devices of the replica; the one before may have been
  /// aborted.
  virtual void begin(const Groups& groups) = 0;

  /// Passes of each optimizer step that this copy takes part in, `own` of them
  /// with samples of its own, which come first.
  virtual std::vector<std::int64_t> passes(std::vector<std::int64_t> own) {
    return own;
  }
  /// Whether one more pass of inference comes: with samples here (`own`), or
  /// for the sake of other copies.
  virtual bool another_pass(bool own) {
    return own;
  }
  /// A pass without samples here.
  virtual void idle_forward() {}
  virtual void idle_backward() {}

  /// The last backward of an optimizer step comes.
  virtual void last_backward() {}
  /// Returns when every owner has the gradient of what it holds. All devices
  /// call it once an optimizer step, with or without backward.
  virtual void finish() = 0;
  /// The optimizer changed the weights that this device owns.
  virtual void weights_changed() = 0;
  /// The sum of what the devices count, each its first-owned boxes.
  virtual double sum_over_parts(double mine) = 0;
};

/// Adds up over some groups in turn; null ones count as alone.
double sum_over_groups(
  double mine, std::initializer_list<std::shared_ptr<net::Collectives>> groups);

} // namespace troupe::models
