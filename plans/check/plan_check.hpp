// Everything that can be known about a plan before a process starts: every
// reason why it cannot run, each with the nearest valid value, warnings, and
// the peak memory of each device. One check for files and presets.
#pragma once

#include "config/settings/algorithm_settings.hpp"
#include "plans/memory/memory_model.hpp"
#include "plans/memory/response_room.hpp"
#include "plans/memory/server_memory.hpp"
#include "plans/recovery/snapshot_planes.hpp"
#include "plans/workflow/evaluation.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::plans {

/// A node of a cluster whose nodes differ.
struct NodeMemory {
  std::string kind = {};
  std::uint64_t device_bytes = 0; ///< that plans may use; 0: not known
  std::uint64_t host_bytes = 0;   ///< of the node itself; 0: not known
};

/// Everything that a plan is checked against. The references must outlive the
/// check.
struct CheckContext {
  const Workflow& workflow;
  const ExecutionPlan& plan;
  BatchSizes sizes = {};
  std::map<std::string, ModelShape> shapes = {}; ///< by role; absent: unknown
  std::map<std::string, DType> dtypes = {};      ///< by role; absent: f32
  std::optional<std::uint64_t> device_memory_bytes = {}; ///< absent: unknown
  std::optional<std::uint64_t> host_memory_bytes = {}; ///< of a node; likewise
  std::vector<NodeMemory> nodes = {}; ///< in order, where they differ
  /// The loss weights samples of older versions by their own log-probabilities
  /// (`old_logprobs: rollout`, or `algorithm.correction`).
  bool corrects_for_lag = true;
  Evaluation evaluation = {};
  /// Number of servers that generate (`rollout.servers`), 0: one is started
  /// per dp rank; absent: our own engine generates.
  std::optional<std::size_t> servers = {};
  /// Roles whose experts are balanced by a loss of each sequence
  /// (`router_aux_loss_coef`).
  std::set<std::string> balanced_roles = {};

  /// Returns the same for another plan, which must outlive it.
  CheckContext with_plan(const ExecutionPlan& other) const;
  /// Returns what a plan may use of a device; the largest number: not known.
  std::uint64_t memory_of(Rank device) const;
  /// Returns the memory of a node's host likewise.
  std::uint64_t host_memory_of(std::uint32_t node) const;
  /// Returns the kind of its node; empty where all are alike.
  std::string kind_of(Rank device) const;
};

/// Takes sizes, dtypes and corrections from the settings, for devices with
/// `device_bytes` of memory (0: not known), of which `usable_bytes`
/// stays free. The caller fills in shapes. `cluster.device` auto counts as cpu.
CheckContext make_check_context(const Settings& settings,
                                const Workflow& workflow,
                                const ExecutionPlan& plan,
                                std::uint64_t device_bytes = 0);

/// Returns the dtype of products with the role's weights on the settings'
/// devices.
DType product_dtype(const Settings& settings, const std::string& role);

struct PlanMistake {
  std::string path;        ///< "calls.actor_gen.strategy"
  std::string message;     ///< "expected ..., got ...; try ..."
  bool wrong_name = false; ///< of a call, replica or role: not arithmetic

  bool operator==(const PlanMistake&) const = default;
};

struct DevicePeak {
  Rank device = {};
  std::string kind = {}; ///< of its node; empty: all are alike
  std::uint64_t peak_bytes = 0;
  std::uint64_t resident_bytes = 0; ///< weights, gradients, optimizer, servers
  std::uint64_t server_bytes = 0;   ///< the last of them
  std::string at_task = {};         ///< empty: no task, resident only
  std::vector<TaskMemory> tasks = {};
};

struct PlanReport {
  std::vector<PlanMistake> errors = {};
  std::vector<std::string> warnings = {};
  std::vector<DevicePeak> devices = {}; ///< empty when there are errors before
  ResponseRooms rooms = {};             ///< the same; with evaluation's
  SnapshotBytes snapshots = {};         ///< 0: not known
  ServerBytes servers = {};             ///< 0: none generates, or not known
  std::uint64_t offloaded_bytes = 0;    ///< of the host with most

  bool ok() const {
    return errors.empty();
  }
};

/// Returns all mistakes at once, without those that follow from others.
PlanReport check_plan(const CheckContext& context);

/// Returns whether a mistake is a name that does not exist: a typo (exit 2),
/// not a plan that cannot run (exit 3).
bool has_wrong_name(const PlanReport& report);
/// Returns the prefix of a mistake's path: the place where the user wrote the
/// value, as "FILE:LINE: ", or "FILE:LINE: plan." for a mapping in the
/// settings.
using MistakePlace = std::function<std::string(const std::string& path)>;
/// Returns "FILE:LINE: path: expected ..., got ...; try ...".
std::string mistake_line(const PlanMistake& mistake,
                         const MistakePlace& place_of = {});
/// Throws PlanError with the first mistake and the number of the others;
/// ConfigError for a wrong name.
void require_ok(const PlanReport& report, const MistakePlace& place_of = {});

/// Largest lag of a plan (`largest_lag`).
inline constexpr std::uint32_t max_plan_lag = largest_lag;

} // namespace troupe::plans
