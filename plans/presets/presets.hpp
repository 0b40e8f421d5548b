// Plans by name: published systems and the two plain ones, for any workflow and
// cluster that they fit. Pure: equal arguments, equal plan.
//
// single          every call on device 0
// data_parallel   every call on all devices, all of them data-parallel
// deepspeed_chat  (flattening) everything on all devices; sharded training
//                 (z3), gathered to tensor parallel for generation (Yao et al.
//                 2023, arXiv 2308.01320, "hybrid engine")
// openrlhf        generation on half (a quarter where models need the memory),
//                 actor, critic, ref and reward each on their own group, all
//                 powers of two (Hu et al. 2024, arXiv 2405.11143)
// openrlhf_colocated  the same; actor with ref, critic with reward
// interleaving    generation in parallel with chunked scoring; scoring calls on
//                 separate devices, trainings on separate devices
// separation      training apart from the rest; other replicas kept, refreshed
// async           separation, generation one version older
// megatron        one layout for all: tp in a node, pp over nodes
// real_heuristic  ReaL's rule for PPO (Mei et al. 2024, arXiv 2406.14088)
// verl            colocated: sharded training, generation with its own tp, idle
//                 weights offloaded (Sheng et al. 2024, arXiv 2409.19256)
#pragma once

#include "config/model/model_shape.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::plans {

/// Facts that presets depend on besides calls and devices.
struct PresetFacts {
  std::map<std::string, ModelShape> shapes = {}; ///< by role; absent: no limits
  std::uint64_t device_memory_bytes = 0;         ///< 0: unknown
  std::uint64_t weight_element_bytes = 2;        ///< of one parameter
  std::uint64_t copy_element_bytes = 0;          ///< of its copy that generates
};

const std::vector<std::string>& preset_names();
bool is_preset(std::string_view name);

/// Returns the plan of a preset; functions run on the host. Throws PlanError
/// for an unknown name (with the nearest one), or with the reason why this
/// cluster or workflow does not fit it.
ExecutionPlan preset(const std::string& name, const Workflow& workflow,
                     const Cluster& cluster, const PresetFacts& facts = {});

} // namespace troupe::plans
