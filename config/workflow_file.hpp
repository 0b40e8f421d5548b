// `workflow: FILE.yaml`: a workflow of calls, functions and losses that the
// program knows, written down without C++. plans makes its Workflow of it.
//
//   settings: [rollout, updates]     # groups that it reads
//   roles: {actor: {trained: true}, ref: {like: actor, follows: actor}}
//   calls:
//     actor_gen:   {generate: actor}
//     ref_inf:     {infer: ref, fn: logprobs, writes: {ref_logprobs: logprobs}}
//     actor_train: {train: actor, fn: my_loss, reads: [logprobs, ref_logprobs]}
#pragma once

#include "config/workflow_traits.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe {

struct FileCall {
  std::string name;
  std::string kind; ///< generate | infer | train | function
  std::string role; ///< empty for functions
  std::string fn;
  std::vector<std::string> reads = {};
  std::vector<std::string> writes = {};
  std::map<std::string, std::string> renames = {}; ///< key -> fn's word for it
};

struct WorkflowFile {
  WorkflowTraits traits; ///< named like the file
  std::vector<FileCall> calls;
};

/// Whether the value of `workflow` names a file.
bool is_workflow_file(const std::string& workflow);
/// Throws ConfigError FILE:LINE: calls.NAME.key: ..
WorkflowFile read_workflow_file(const std::string& file);

} // namespace troupe
