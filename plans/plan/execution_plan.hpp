// A plan as a value: where each call runs, with which strategy and batching,
// what happens to replicas between uses, and the lag of calls. Parses and
// prints the YAML that users write (examples in docs/field_as_plans.md);
// plan_check decides whether a plan can run.
#pragma once

#include "config/base/ids.hpp"
#include "config/base/strategy.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::plans {

struct Cluster {
  std::uint32_t nodes = 1;
  std::uint32_t devices_per_node = 1;
  std::uint32_t workers_per_node = 1;

  bool operator==(const Cluster&) const = default;
  std::uint32_t num_devices() const {
    return nodes * devices_per_node;
  }
  std::uint32_t num_workers() const {
    return nodes * workers_per_node;
  }
  std::uint32_t node_of(Rank device) const {
    return device.value / devices_per_node;
  }
  /// Returns the worker of a device: the devices of a node are split over its
  /// workers in equal contiguous runs, the remainder to the first.
  WorkerId worker_of(Rank device) const;
  /// Returns the devices of one worker, ascending.
  std::vector<Rank> devices_of(WorkerId worker) const;
};

/// Devices, strategy and batching of one call.
struct Placement {
  std::vector<Rank> devices = {}; ///< ascending; empty: on the host
  bool on_workers = false; ///< `devices: workers`, for user-defined actors
  Strategy strategy = {};
  std::int64_t micro_batch_tokens = 0; ///< 0: the default
  int micro_batches = 0;               ///< per mini-batch; 0: by tokens
  int chunks = 1;
  /// Parts in which a generation makes each response, on ever newer weights
  /// (call_slices.hpp).
  int slices = 1;
  int instances
    = 0; ///< of a user-defined actor, see user_placement.hpp; 0: default
  /// Responses that a generation decodes at once per dp rank: derived
  /// (response_room.hpp), not written in plan files. 0: as many as the settings
  /// allow.
  std::uint32_t responses = 0;

  bool operator==(const Placement&) const = default;
};

/// Planes that leave the device while no call of the role needs them.
struct RoleMemory {
  bool offload_weights = false;
  bool offload_optimizer = false;

  bool operator==(const RoleMemory&) const = default;
};

struct ExecutionPlan {
  Cluster cluster = {};
  std::map<std::string, Placement> calls = {};   ///< by call
  std::map<std::string, bool> replicas = {};     ///< "actor@actor_gen" -> keep
  std::map<std::string, RoleMemory> roles = {};  ///< by role
  std::map<std::string, std::uint32_t> lag = {}; ///< by call; absent: 0

  bool operator==(const ExecutionPlan&) const = default;
  std::uint32_t lag_of(const std::string& call) const;
  std::uint32_t slices_of(const std::string& call) const;
  /// Returns the lag of its oldest tokens: that of its first slice.
  std::uint32_t most_lag_of(const std::string& call) const;
  /// Returns whether any call uses older weights than the newest.
  bool lags() const;
};

/// Parses a plan file. Throws ConfigError for every mistake, with FILE:LINE and
/// the nearest valid name or value.
ExecutionPlan parse_plan(const std::string& yaml, const std::string& file);

/// Returns YAML that parses back to an equal plan; equal plans give equal text.
std::string print(const ExecutionPlan& plan);

/// Returns a hash of `print(plan)` that is the same on every machine (FNV-1a).
std::uint64_t hash(const ExecutionPlan& plan);

/// Returns "0-3", "0,2-3", "host" for none.
std::string print_devices(const std::vector<Rank>& devices);
/// Parses what print_devices returns: ascending, no duplicates. Throws
/// std::invalid_argument with one sentence.
std::vector<Rank> parse_devices(std::string_view text);

} // namespace troupe::plans
