// `workflow: FILE.yaml`: a workflow of calls, functions and losses that the
// program knows, written down without C++. plans makes its Workflow of it.
//
//   settings: [rollout, updates]     # groups that it reads
//   roles: {actor: {trained: true}, ref: {like: actor, follows: actor}}
//   calls:
//     actor_gen:   {generate: actor}
//     ref_inf:     {infer: ref, fn: logprobs, writes: {ref_logprobs: logprobs}}
//     actor_train: {train: actor, fn: my_loss, reads: [logprobs, ref_logprobs]}
//     advantages:
//       function: ppo_advantages
//       carries: {kl_coef: algorithm.kl_coef}   # what the first step gets
#pragma once

#include "config/error.hpp"
#include "config/workflow_traits.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

struct Settings;

/// A number that a function hands from step to step.
struct FileCarried {
  std::string name;
  Place place;
  double initial = 0;
  std::string setting = {}; ///< whose value is the initial one; "": none
  std::string metric = {};  ///< that shows what a step left; "": none
};

struct FileCall {
  std::string name;
  std::string kind; ///< generate | infer | train | function
  std::string role; ///< empty for functions
  std::string fn;
  std::vector<std::string> reads = {};
  std::vector<std::string> writes = {};
  /// Keys, and fn's words for them where those are others.
  std::vector<std::pair<std::string, std::string>> renames = {};
  std::vector<FileCarried> carries = {};
  bool greedy = false;
};

struct WorkflowFile {
  WorkflowTraits traits; ///< named like the file
  std::vector<FileCall> calls = {};
  std::map<std::string, Place> places = {}; ///< of "roles.ref", "calls.ref_inf"
};

/// The word for the group in `settings`.
std::string word_of(SettingsGroup group);
/// Whether the value of `workflow` names a file.
bool is_workflow_file(const std::string& workflow);
/// Throws ConfigError FILE:LINE: calls.NAME.key: ..
WorkflowFile read_workflow_file(const std::string& file);
/// What the first step gets.
double initial_value(const FileCarried& value, const Settings& settings);

} // namespace troupe
