// The section `agents` of a run's settings: programs from outside that lead the
// conversations of samples.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct AgentSettings {
  std::string command;           ///< shell command of a session; "": none
  std::optional<int> port;       ///< of worker 0; {}: any free one
  int concurrency = 64;          ///< sessions at once per device that generates
  double timeout_s = 600;        ///< of one attempt
  int retries = 1;               ///< attempts after the first
  std::string sandbox;           ///< before the command; "": none
  std::vector<std::string> with; ///< roles that programs talk to as well
};

} // namespace troupe
