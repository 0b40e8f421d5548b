// Metrics of a training's routers: how evenly sequences use the experts of this
// stage's layers, and how often a router would not have chosen an expert that
// it replays. Every stage has its own, unlike those of the loss.
#pragma once

#include "config/model/expert_shape.hpp"
#include "models/rl/metric_sums.hpp"
#include "models/transformer/shared_prompt.hpp"

namespace troupe::models {

struct Groups;

/// Adds, if layers have experts, and waits for choices that only the device
/// knows, and for the cp group, whose sequences these are:
/// - moe/balance: the share of experts that a sequence uses, as if it used that
///   many evenly, (sum over experts of load)^2 / (E * sum of load^2), mean over
///   sequences and layers. It does not depend on micro-batches (I1).
/// - moe/routing_mismatch: the share of replayed experts that the router would
///   not have chosen; only if any are replayed.
/// - moe/aux_loss: the sequence-wise balance loss, mean likewise; only if its
///   weight is above 0.
void add_expert_metrics(Backend& backend, const Saved& saved,
                        const PackedSequences& sequences,
                        const ExpertShape& experts, const Groups& groups,
                        MetricSums& sums);

/// Returns those of the sums that add_expert_metrics has added.
MetricSums expert_sums(const MetricSums& sums);

} // namespace troupe::models
