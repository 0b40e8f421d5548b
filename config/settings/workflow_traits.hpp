// Facts about a workflow that settings, data and commands need before it
// exists: the rows that it reads, the settings that it uses, its roles. One
// table: built-in workflows are in it from the start, an App adds its own
// before it reads any settings. The calls themselves are made in
// plans/workflow/algorithms.
#pragma once

#include "config/base/data_kind.hpp"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Groups of settings that some workflows read and others would ignore. A
/// setting without a group is read by all.
enum class SettingsGroup : std::uint8_t {
  rollout,      ///< rollout.*, run.replay, prompt length, sampling in eval
  sequences,    ///< lengths of whole sequences, run.epochs
  rewards,      ///< reward.*
  agents,       ///< agents.*
  advantages,   ///< algorithm: advantages from rewards
  policy,       ///< algorithm: KL terms and the clipped policy loss
  critic,       ///< algorithm: value loss
  preference,   ///< algorithm: pair loss
  distillation, ///< algorithm: divergence from a teacher
  labels,       ///< algorithm: loss of labelled responses
  reward_pairs, ///< algorithm: loss of a reward model
  updates,      ///< algorithm: mini-batches, epochs, recomputation
  user_actors,  ///< timeouts of user-defined actors
  command,      ///< set by options of a command
};

struct RoleTraits {
  std::string name;
  bool trained = false;
  bool scalar_head = false;
  std::string needs_key = {}; ///< setting that decides whether it is used
  std::vector<std::string> needs_value
    = {};                           ///< values with which it is; "": always
  std::string default_path_of = {}; ///< role whose weights it starts from
  std::string ema = {};             ///< role that it averages
};

struct WorkflowTraits {
  std::string name;
  std::string sentence; ///< "supervised fine-tuning"
  DataKind data = DataKind::prompts;
  std::vector<SettingsGroup> groups = {};
  std::vector<RoleTraits> roles = {};
  std::vector<std::string> sections = {}; ///< settings sections added with it
  /// Dotted keys and values that replace the settings' defaults; a key that
  /// depends on another one follows it.
  std::vector<std::pair<std::string, std::string>> defaults = {};
  bool is_command = false; ///< made by a command, not named in users' files

  bool reads(SettingsGroup group) const;
  const RoleTraits* find_role(std::string_view role) const; ///< nullptr: none
};

/// Returns all workflows in the order in which messages name them.
const std::deque<WorkflowTraits>& workflow_table();
/// Adds a workflow. Throws ConfigError if the name is taken.
void add_workflow_traits(WorkflowTraits traits);
/// Removes all but the built-in workflows: for tests that add those of several
/// programs.
void forget_added_workflows();
const WorkflowTraits* find_workflow_traits(std::string_view name);

/// Returns the names that users' files may use: sft, reward, dpo, ppo, and
/// added ones.
std::vector<std::string> workflow_names();
/// Returns true if workflow `name` exists and reads the group's settings.
bool workflow_reads(std::string_view name, SettingsGroup group);
/// Returns the kind of rows in its data file; prompts for an unknown workflow.
DataKind workflow_data(std::string_view name);

} // namespace troupe
