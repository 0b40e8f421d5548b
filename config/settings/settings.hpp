// A run's settings, read from YAML files and `key=value` overrides. One table
// (settings_schema.hpp) holds type, range and sentence of each; parsing,
// printing and `troupe explain` all use that table.
#pragma once

#include "config/base/duration.hpp"
#include "config/base/error.hpp"
#include "config/settings/settings_types.hpp"
#include "config/settings/user_sections.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe {

struct Settings {
  RunSettings run;
  ClusterSettings cluster;
  std::string workflow;
  std::map<std::string, ModelSettings> models; ///< by role
  DataSettings data;
  RolloutSettings rollout;
  AlgorithmSettings algorithm;
  RewardSettings reward;
  EvalSettings eval;
  std::string plan = "auto"; ///< auto, a preset, a file, or YAML text
  bool plan_inline = false;  ///< `plan` is the inline mapping as YAML text
  MetricsSettings metrics;
  TraceSettings trace;
  UserSettings user
    = user_settings_defaults(); ///< user-defined sections by name
  /// Place where the user set each dotted key; defaults are not included.
  std::map<std::string, Place> places;

  /// Compares values; the places where they were set do not count.
  bool operator==(const Settings& other) const;
};

/// Merges `files` left to right, then `overrides` ("a.b=c"; "key=null"
/// removes). Throws ConfigError with FILE:LINE, or "command line".
Settings load_settings(const std::vector<std::string>& files,
                       const std::vector<std::string>& overrides);
/// Parses the same from text, e.g. a config.yaml sent to workers.
Settings parse_settings(const std::string& yaml_text,
                        const std::string& file_name);
/// Returns every setting that applies to the workflow as YAML; parses back
/// equal.
std::string print_settings(const Settings& settings);

/// Returns "$NAME", which is printed in place of the value of a variable in
/// `cluster.env`, and means the value that the variable has here.
std::string variable_named(const std::string& name);
/// Returns `cluster.env` with the values of this process's environment where it
/// refers to them. Throws ConfigError for a variable that is not set here.
std::map<std::string, std::string> worker_environment(const Settings& settings);
/// Explains one setting or section; "" returns the whole commented YAML. Throws
/// ConfigError that names the nearest key.
std::string explain_settings(const std::string& key);
/// Returns the place where the user set `dotted_key`, else an empty place.
Place place_of(const Settings& settings, const std::string& dotted_key);
/// Returns the same, else the place where the nearest parent key was set.
Place nearest_place_of(const Settings& settings, std::string dotted_key);
/// Returns true if the user wrote the setting, even with the default's value.
bool was_set(const Settings& settings, const std::string& dotted_key);

/// Returns the section `agents`.
inline const AgentSettings& agents_of(const Settings& settings) {
  return settings.rollout.engine.agents;
}

/// Returns true if reward.missing_eos replaces rewards: it is set and not 0.
inline bool replaces_missing_eos(const Settings& settings) {
  return settings.reward.long_response.missing_eos != 0;
}

/// Returns true if the loss of workflow dpo reads a reference model.
inline bool compares_with_reference(const Settings& settings) {
  const auto& kind = settings.algorithm.preference.kind;
  return kind == "dpo" || kind == "ipo";
}

/// Returns true if rows of preferences have a margin (reward models).
inline bool has_margin(const Settings& settings) {
  return settings.data.fields.contains("margin");
}

/// Returns the rows of data.ptx that each step trains on; 0 without that file.
inline int ptx_rows(const Settings& settings) {
  const auto& data = settings.data;
  if (data.ptx.empty())
    return 0;
  return data.ptx_batch_size > 0 ? data.ptx_batch_size : data.batch_size;
}

/// Returns true if the policy loss treats a few tokens apart by their
/// covariance: clip_cov and kl_cov.
inline bool chooses_cov_tokens(const Settings& settings) {
  return settings.algorithm.loss.kind.ends_with("_cov");
}

/// Returns the dotted keys in which two settings differ, in table order, except
/// those equal to, or below, one of `except` ("cluster", "run.steps").
std::vector<std::string>
settings_difference(const Settings& a, const Settings& b,
                    const std::vector<std::string>& except = {});
/// Returns the settings that may change between a run and its continuation
/// (`run.resume: auto`).
const std::vector<std::string>& resumable_changes();

/// Returns true for generate, score and convert, the workflows of commands that
/// use one model. The command makes the settings itself; users' files do not
/// name these workflows.
bool is_command_workflow(const std::string& workflow);

/// Returns the roles of a workflow (config/settings/workflow_traits.hpp), used
/// or not. Empty for an unknown workflow.
std::vector<std::string> roles_of(const std::string& workflow);

} // namespace troupe
