// Calls of tools in what a model wrote, between <tool_call> and </tool_call> as
// JSON with name and arguments: the form of Hermes, Qwen and others.
#pragma once

#include "models/agents/held_json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::models {

struct ToolCall {
  std::string name;
  HeldJson arguments;
};

struct SaidText {
  std::string content; ///< before the first call, without blanks at its end
  std::vector<ToolCall> calls;
};

/// Returns the text with its calls. If a call is not what it should be, or a
/// text follows the calls, all of the text is content: the program that reads
/// it decides.
SaidText split_tool_calls(std::string_view text);

} // namespace troupe::models
