// Messages of a conversation in one form, however a client's library writes
// them, so that a template can render them and a request can be recognized as
// the continuation of an earlier one.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace troupe::models {

/// Returns messages with `content` as a text, arguments of tool calls as
/// values, and only the members that templates read. Throws ApiError for what
/// is no message, or holds anything but text.
nlohmann::ordered_json normal_messages(const nlohmann::ordered_json& messages);

/// Returns whether two messages of that form say the same: role, content and
/// calls; ids of calls do not count.
bool is_same_message(const nlohmann::ordered_json& a,
                     const nlohmann::ordered_json& b);

} // namespace troupe::models
