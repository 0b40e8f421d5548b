// JSON that a stranger wrote: a model, or a program that it leads. Nested
// values are walked by recursion, so depth is limited before anything is built.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string_view>

namespace troupe::models {

/// Deepest nesting of lists and objects: that of no schema of a tool.
inline constexpr std::size_t most_json_depth = 64;

/// Returns the value; a discarded one if the text is no JSON, or is nested too
/// deep.
nlohmann::ordered_json parse_shallow_json(std::string_view text);

} // namespace troupe::models
