// How a session of an agent went, by the output and the end of its program: its
// reward, or why it failed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::models {

/// Returns the reward of the last line `{"reward": NUMBER, ...}` of a program's
/// standard output; nothing: there is none.
std::optional<double> reward_of_output(std::string_view output);

/// How a session went.
struct SessionEnd {
  std::optional<double> reward;
  std::string failure; ///< why it failed; empty: it did not
};

/// The end of a program, as its parent knows it.
struct ProgramEnd {
  std::string how;              ///< "exit code 1"; empty: it exited with 0
  std::string last_word;        ///< the last line on its standard error
  std::string output;           ///< its standard output
  std::optional<double> posted; ///< the reward that it posted
};

/// Returns how the session of the program went; `needs_reward` is whether its
/// number is the sample's score.
SessionEnd session_end(const ProgramEnd& program, bool needs_reward);

} // namespace troupe::models
