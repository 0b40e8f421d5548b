// The layouts that another system can be told to run: its degrees of freedom,
// every combination that its devices and models allow, and its own flags for
// each. What it has no flag for is said in sentences.
#pragma once

#include "plans/cost/plan_problem.hpp"
#include "plans/foreign/recipe.hpp"

#include <string>
#include <vector>

namespace troupe::plans {

/// Models that a system's flags can put into host memory while they are idle.
struct OffloadAbilities {
  bool weights = true; ///< of trained models
  bool optimizer = true;
  bool optimizer_alone = true;    ///< without the weights
  bool megatron = true;           ///< of what is not sharded fully
  bool frozen = true;             ///< ref and reward
  bool reward = true;             ///< with the ref
  bool frozen_as_trained = false; ///< they share the trained models' flag
};

/// Degrees of freedom that a system's flags have.
struct Abilities {
  bool colocated = true;        ///< all models on the same devices
  bool split = false;           ///< generation on devices of its own
  bool groups = false;          ///< a group of devices for each model
  bool pipelines = false;       ///< in training
  bool tensor_training = false; ///< tensor degrees in training
  bool tensor_with_z3 = false;  ///< together with sharded parameters
  std::vector<int> zero = {3};  ///< sharded states, where tensor and pipeline
                                ///< degrees are 1
  OffloadAbilities offload = {};
};
const Abilities& abilities_of(System system);

/// Returns every layout of the recipe's work that its system can express on the
/// problem's devices; some may not fit their memory.
std::vector<SystemLayout> layouts_of(const Recipe& recipe,
                                     const PlanProblem& problem);

/// A flag of the system, as its files write it.
struct SystemFlag {
  std::string key;
  std::string value;
  bool is_switch = false; ///< on where it stands, without a value

  bool operator==(const SystemFlag&) const = default;
};
/// Returns "--key value", "key=value", "--switch" or "remove --switch".
std::string print(const SystemFlag& flag);
/// Returns the flags that say this layout, in the system's own words.
std::vector<SystemFlag> flags_of(System system, const SystemLayout& layout,
                                 const Workload& work);
/// Returns those of `layout` that the recipe `own` does not have already;
/// `work` is on the devices of `layout`.
std::vector<SystemFlag> changed_flags(const Recipe& own,
                                      const SystemLayout& layout,
                                      const Workload& work);

/// Returns a sentence for each part of a plan that the system has no flag for.
std::vector<std::string> inexpressible(System system, const Workflow& workflow,
                                       const ExecutionPlan& plan);

/// Splits KEY=VALUE of --what-if. Throws ConfigError for anything else.
SystemFlag parse_change(const std::string& word);

/// Returns whether `changed_layout` knows the key.
bool is_layout_word(const std::string& key);

/// Changes a layout by KEY=VALUE: tp, pp (generation), train_tp, train_pp,
/// zero, offload (none, optimizer, all), micro_batch_tokens, lag. Throws
/// ConfigError with the nearest key, or if the devices cannot be cut so.
SystemLayout changed_layout(SystemLayout layout, const std::string& key,
                            const std::string& value);

/// Returns the layout on another number of devices: the same degrees, more or
/// fewer of their replicas. Throws ConfigError if a part cannot be cut so.
SystemLayout resized(SystemLayout layout, std::uint32_t from, std::uint32_t to);

} // namespace troupe::plans
