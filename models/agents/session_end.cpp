#include "models/agents/session_end.hpp"

#include "models/agents/shallow_json.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

namespace troupe::models {

namespace {

std::optional<double> reward_of_line(std::string_view line) {
  if (line.find("\"reward\"") == line.npos)
    return std::nullopt;
  const auto value = parse_shallow_json(line);
  if (!value.is_object() || !value.contains("reward")
      || !value["reward"].is_number())
    return std::nullopt;
  const auto reward = value["reward"].get<double>();
  return std::isfinite(reward) ? std::optional(reward) : std::nullopt;
}

} // namespace

std::optional<double> reward_of_output(std::string_view output) {
  while (!output.empty()) {
    const auto end = output.rfind('\n');
    const auto line = end == output.npos ? output : output.substr(end + 1);
    if (const auto reward = reward_of_line(line))
      return reward;
    output = end == output.npos ? std::string_view{} : output.substr(0, end);
  }
  return std::nullopt;
}

SessionEnd session_end(const ProgramEnd& program, bool needs_reward) {
  SessionEnd end;
  end.reward = reward_of_output(program.output);
  if (!end.reward)
    end.reward = program.posted;
  const auto said = program.last_word.empty() ? "" : ": " + program.last_word;
  if (!program.how.empty())
    end.failure = "the program ended with " + program.how + said;
  else if (needs_reward && !end.reward)
    end.failure = "the program ended without a line {\"reward\": NUMBER}, "
                  "and posted none"
                  + said;
  return end;
}

} // namespace troupe::models
