// What settings, data and commands must know of a workflow before it exists:
// the rows it reads, the settings it uses, its roles. One table: built-ins are
// in it from the start, an App adds its own before it reads any settings.
// The calls themselves are made in plans/workflows.
#pragma once

#include "config/data_kind.hpp"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Settings that some workflows read and others would ignore. A setting without
/// a group is read by all.
enum class SettingsGroup : std::uint8_t {
  rollout,    ///< rollout.*, run.replay, prompt length, sampling in eval
  sequences,  ///< lengths of whole sequences, run.epochs
  rewards,    ///< reward.*
  advantages, ///< algorithm: from rewards to advantages
  policy,     ///< algorithm: KL terms and the clipped policy loss
  critic,     ///< algorithm: the loss of values
  preference, ///< algorithm: the loss of pairs
  updates,    ///< algorithm: mini-batches, epochs, recomputation
  own_actors, ///< how long they may be silent
  verb,       ///< set by options of a verb
};

struct RoleTraits {
  std::string name;
  bool trained = false;
  bool scalar_head = false;
  std::string needs_key = {};                ///< used only if this setting ..
  std::vector<std::string> needs_value = {}; ///< .. is one of these; "": always
  std::string default_path_of = {}; ///< the role whose weights are its default
  std::string follows = {};         ///< the role that it is an average of
};

struct WorkflowTraits {
  std::string name;
  std::string sentence; ///< "supervised fine-tuning"
  DataKind data = DataKind::prompts;
  std::vector<SettingsGroup> groups = {};
  std::vector<RoleTraits> roles = {};
  std::vector<std::string> sections = {}; ///< of settings, added with it
  /// Dotted keys and values in place of the settings' own defaults; a key that
  /// another one needs comes behind it.
  std::vector<std::pair<std::string, std::string>> defaults = {};
  bool is_verb = false; ///< made by a verb, not named by users' files

  bool reads(SettingsGroup group) const;
  const RoleTraits* find_role(std::string_view role) const; ///< nullptr: none
};

/// In the order in which messages name them.
const std::deque<WorkflowTraits>& workflow_table();
/// Adds a workflow. Throws ConfigError where the name is taken.
void add_workflow_traits(WorkflowTraits traits);
/// Back to the built-in ones: for tests, which add several programs'.
void forget_added_workflows();
const WorkflowTraits* find_workflow_traits(std::string_view name);

/// Names that users' files may say: sft, reward, dpo, ppo, and what was added.
std::vector<std::string> workflow_names();
/// Whether workflow `name` is there and reads the group's settings.
bool workflow_reads(std::string_view name, SettingsGroup group);
/// Rows of its data file; an unknown workflow's are prompts.
DataKind workflow_data(std::string_view name);

} // namespace troupe
