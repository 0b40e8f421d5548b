// Finds the word that a user may have meant. If none is near, nothing is
// suggested: a wrong suggestion costs more than none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Returns the number of insertions, deletions, changes and swaps of neighbors
/// that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);
/// Returns the nearest candidate, the first among equals; "" if its distance
/// exceeds half of the longer word's letters.
std::string nearest_word(std::string_view word,
                         const std::vector<std::string>& candidates);
/// Returns the nearest dotted key, where a right last part in a wrong section
/// also counts as near ("run.batch_size" -> "data.batch_size"). There are many
/// keys, so the last part must be nearer: a third of its letters.
std::string nearest_key(std::string_view key,
                        const std::vector<std::string>& candidates);

} // namespace troupe
