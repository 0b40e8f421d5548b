// Reads `--hardware`: the hardware of one kind of node, or a list of nodes of
// several kinds, in order:
//
//   nodes:
//     - {kind: h100x8, count: 2}      # devices 0-15: a shipped name,
//     - {kind: a100.yaml, count: 4}   # a file, from the folder of this one,
//     - kind: {name: old, device: {...}, ...}   # or a hardware file's contents
//
// Entries with equal contents are one kind.
#pragma once

#include "plans/cost/cluster_hardware.hpp"

#include <string>

namespace troupe::plans {

/// Loads a shipped file by name, or a file by path. Throws ConfigError with
/// FILE:LINE, the path and the nearest name.
ClusterHardware load_cluster_hardware(const std::string& name_or_file);

/// Parses the text of a file with a list of nodes.
ClusterHardware parse_cluster_hardware(const std::string& yaml,
                                       const std::string& file);

} // namespace troupe::plans
