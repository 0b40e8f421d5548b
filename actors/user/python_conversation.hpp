// A conversation that an async function in Python leads, as lines to the
// process that has it and the answers of that. Between lines the function waits
// for the model there. A process that has been replaced knows nothing: it is
// told the conversation from its beginning, and must say the same things again,
// so no turn is generated twice. Pure; python_leader.hpp sends the lines.
#pragma once

#include "actors/worker_base/user_calls.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// The next step of the function.
struct PythonStep {
  enum class Kind : std::uint8_t {
    extend,    ///< it awaits a turn of the model
    end,       ///< the conversation is over, and its keys are set
    forgotten, ///< the process does not have it: send whole()
  };
  Kind kind = Kind::extend;
  std::uint32_t max_tokens = 0; ///< of the turn; 0: no limit of its own
  std::string role = {};        ///< that speaks; empty: the call's own
};

class PythonConversation {
public:
  /// Begins with what the sample has of the entry's keys; `id` is unique in the
  /// process.
  PythonConversation(std::uint64_t id, const UserEntry& entry,
                     const Sample& sample);

  /// Returns the line with all that happened so far: nothing, at first.
  std::string whole() const;
  /// Returns the line with the turn that the model has added to the sample.
  std::string next(const Sample& sample);
  /// Appends to the sample what the function did, and at the end sets the keys
  /// that it writes. Throws std::runtime_error with its mistake.
  PythonStep take(std::string_view answer, Sample& sample);

private:
  const UserEntry& entry_;
  std::uint64_t id_;
  // JSON texts
  std::string begin_;
  std::vector<std::string> turns_;
  std::vector<std::string> said_; ///< the answer before each turn
};

/// Returns the command of a process that leads the entry's conversations. It
/// writes `python_conversation_ready` once the file is loaded.
std::vector<std::string> python_conversation_command(const UserEntry& entry);
inline constexpr const char* python_conversation_ready = "ready";

} // namespace troupe::actors
