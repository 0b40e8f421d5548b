// The basis of a plan command's numbers, as a field of its JSON document: how
// many numbers of the hardware were measured, fitted, taken from data sheets or
// assumed, and the sentence at the end of its table.
#pragma once

#include "plans/cost/cluster_hardware.hpp"

#include <nlohmann/json_fwd.hpp>

namespace troupe::runtime {

/// Returns {"hardware": "h100x8", "profiled": false, "numbers": {"measured": 0,
/// ...}, "note": `plans::basis_of`}.
nlohmann::ordered_json basis_json(const plans::ClusterHardware& hardware);

} // namespace troupe::runtime
