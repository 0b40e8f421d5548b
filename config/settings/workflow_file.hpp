// `workflow: FILE.yaml`: a workflow of calls, functions and losses that the
// program knows, written without C++. plans turns it into a Workflow.
//
//   settings: [rollout, updates]     # groups that it reads
//   roles: {actor: {trained: true}, ref: {like: actor, follows: actor}}
//   calls:
//     actor_gen:   {generate: actor}   # led by somebody: with: [opponent]
//     ref_inf:     {infer: ref, fn: logprobs, writes: {ref_logprobs: logprobs}}
//     actor_train: {train: actor, fn: my_loss, reads: [logprobs, ref_logprobs]}
//     check: {function: checks.py:check, reads: [response], writes: [right]}
//     advantages:
//       function: ppo_advantages
//       carries: {kl_coef: algorithm.kl_coef}   # its first value
#pragma once

#include "config/base/error.hpp"
#include "config/settings/python_functions.hpp"
#include "config/settings/workflow_traits.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

struct Settings;

/// A number that a function passes from step to step.
struct FileCarried {
  std::string name;
  Place place;
  double initial = 0;
  std::string setting = {}; ///< setting with its initial value; "": none
  std::string metric = {};  ///< metric that reports it; "": none
};

struct FileCall {
  std::string name;
  std::string kind; ///< generate | infer | train | function
  std::string role; ///< empty for functions
  std::string fn;
  std::vector<std::string> reads = {};
  std::vector<std::string> writes = {};
  /// Keys, and the names that fn uses for them if those differ.
  std::vector<std::pair<std::string, std::string>> renames = {};
  std::vector<FileCarried> carries = {};
  bool greedy = false;
  std::vector<std::string> with = {};    ///< roles that speak beside `role`
  std::optional<PythonCall> python = {}; ///< of one in Python
};

/// A metric of a file: the mean of a key over the samples of a step.
struct FileMetric {
  std::string name;
  std::string key;
  Place place;
};

struct WorkflowFile {
  WorkflowTraits traits; ///< name: that of the file
  std::vector<FileCall> calls = {};
  std::vector<FileMetric> metrics = {};
  std::map<std::string, Place> places = {}; ///< of "roles.ref", "calls.ref_inf"
};

/// Returns the name of the group in `settings`.
std::string word_of(SettingsGroup group);
/// Returns true if the value of `workflow` names a file.
bool is_workflow_file(const std::string& workflow);
/// Makes this process read `text` as the contents of `file`, which may be on
/// another host. Not thread-safe; called before the file is read.
void use_workflow_text(const std::string& file, std::string text);
/// Reads a workflow file. Throws ConfigError FILE:LINE: calls.NAME.key: ...
WorkflowFile read_workflow_file(const std::string& file);
/// Returns the value in the first step.
double initial_value(const FileCarried& value, const Settings& settings);

} // namespace troupe
