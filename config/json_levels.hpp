// How deep JSON text nests: nlohmann/json reads any depth, but prints and
// compares by calling itself, so a hostile text would end the process.
#pragma once

#include <cstddef>
#include <string_view>

namespace troupe {

/// No row, tokenizer or answer of people nests like this.
constexpr std::size_t json_levels_limit = 500;

/// Whether lists and objects of `text` stand in each other deeper than the
/// limit; of text that is no JSON any answer.
bool nests_too_deep(std::string_view text);

} // namespace troupe
