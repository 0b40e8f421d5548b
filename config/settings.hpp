// A run's settings, read from YAML files and `key=value` overrides. One table
// (settings_schema.hpp) gives each its type, range and sentence; parsing,
// printing and `troupe explain` all come from that table.
#pragma once

#include "config/duration.hpp"
#include "config/error.hpp"
#include "config/own_sections.hpp"
#include "config/settings_types.hpp"

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
  OwnSettings own = own_settings_defaults(); ///< of an own program, by section
  /// Where the user set each dotted key; defaults are not in here.
  std::map<std::string, Place> places;

  /// Equal values; where they were set does not count.
  bool operator==(const Settings& other) const;
};

/// Merges `files` left to right, then `overrides` ("a.b=c"; "key=null"
/// removes). Throws ConfigError with FILE:LINE, or "command line".
Settings load_settings(const std::vector<std::string>& files,
                       const std::vector<std::string>& overrides);
/// The same from text, e.g. a config.yaml sent to workers.
Settings parse_settings(const std::string& yaml_text,
                        const std::string& file_name);
/// Every setting that applies to the workflow as YAML; parses back equal.
std::string print_settings(const Settings& settings);
/// One setting or section; "" gives the whole commented YAML. Throws
/// ConfigError that names the nearest key.
std::string explain_settings(const std::string& key);
/// Where the user set `dotted_key`, else an empty place.
Place place_of(const Settings& settings, const std::string& dotted_key);
/// The same, else where the nearest key above it was set.
Place nearest_place_of(const Settings& settings, std::string dotted_key);
/// A value that only equals the default but was written counts as set.
bool was_set(const Settings& settings, const std::string& dotted_key);

/// reward.missing_eos replaces rewards only where it is set and not 0.
inline bool replaces_missing_eos(const Settings& settings) {
  return settings.reward.missing_eos != 0;
}

/// The dotted keys in which two settings differ, in table order, except those
/// equal to, or below, one of `except` ("cluster", "run.steps").
std::vector<std::string>
settings_difference(const Settings& a, const Settings& b,
                    const std::vector<std::string>& except = {});
/// What may change between a run and its continuation (`run.resume: auto`).
const std::vector<std::string>& resumable_changes();

/// generate, score, convert: what a verb runs with one model. The verb makes
/// the settings itself; users' files do not name these workflows.
bool is_verb_workflow(const std::string& workflow);

/// Roles of a workflow (config/workflow_traits.hpp), used or not. Empty for an
/// unknown workflow.
std::vector<std::string> roles_of(const std::string& workflow);

} // namespace troupe
