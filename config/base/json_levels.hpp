// Nesting depth of JSON text: nlohmann/json reads any depth, but prints and
// compares recursively, so a hostile text would crash the process.
#pragma once

#include <cstddef>
#include <string_view>

namespace troupe {

/// Limit that no legitimate row, tokenizer or response reaches.
constexpr std::size_t json_levels_limit = 500;

/// Returns true if lists and objects of `text` nest deeper than `limit`;
/// unspecified for text that is not JSON.
bool nests_too_deep(std::string_view text,
                    std::size_t limit = json_levels_limit);

} // namespace troupe
