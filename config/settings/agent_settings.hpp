// The section `agents` of a run's settings: programs from outside that lead the
// conversations of samples.
#pragma once

#include <string>
#include <vector>

namespace troupe {

struct AgentSettings {
  /// Shell command of a session; "": none; "outside": others start programs,
  /// which take their sessions.
  std::string command;
  int port = 0;                  ///< of the master's endpoint; 0: none
  int concurrency = 64;          ///< sessions at once per device that generates
  double timeout_s = 600;        ///< of one attempt
  int retries = 1;               ///< attempts after the first
  std::string sandbox;           ///< before the command; "": none
  std::vector<std::string> with; ///< roles that programs talk to as well

  /// Returns whether programs that others start take the sessions.
  bool from_outside() const {
    return command == "outside";
  }
};

} // namespace troupe
