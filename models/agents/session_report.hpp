// How a session goes that a program from outside takes at the master's
// endpoint: what the program gets when it takes it, what it says at the end,
// and how the session went by that.
#pragma once

#include "models/agents/session_end.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::models {

/// A session as the program that takes it gets it.
struct TakenSession {
  std::string key;
  std::uint32_t sample = 0;
  std::string row; ///< JSON
  double timeout_s = 0;
};

/// Returns the session as JSON, with the address where its model is.
std::string taken_session_body(const TakenSession& session,
                               const std::string& base_url);

/// Last words of a program about its session.
struct SessionReport {
  std::optional<double> reward;
  bool failed = false;
};

/// Parses `{"reward": NUMBER, "failed": BOOL}`, both of which may be left out;
/// so may the object. Throws ApiError.
SessionReport parse_session_report(std::string_view body);

/// Returns how the session went; `posted` is the reward that the program posted
/// before, `needs_reward` is whether its number is the sample's score.
SessionEnd session_end(const SessionReport& report,
                       std::optional<double> posted, bool needs_reward);
/// Returns how a session went that was not ended in time.
SessionEnd late_session_end(double timeout_s);

} // namespace troupe::models
