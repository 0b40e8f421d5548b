// Finds the word that somebody may have meant.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Insertions, deletions, changes and swaps of neighbours that turn `a` into
/// `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);
/// The candidate with the least distance, the first among equals; "" if there
/// is none.
std::string nearest_word(std::string_view word,
                         const std::vector<std::string>& candidates);
/// The same for dotted keys, where a right last part in a wrong section is near
/// too ("run.batch_size" -> "data.batch_size").
std::string nearest_key(std::string_view key,
                        const std::vector<std::string>& candidates);

} // namespace troupe
