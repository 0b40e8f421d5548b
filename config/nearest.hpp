// Finds the word that somebody may have meant. A word that is not near has no
// suggestion: a wrong one costs more than none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Insertions, deletions, changes and swaps of neighbours that turn `a` into
/// `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);
/// The candidate with the least distance, the first among equals; "" where the
/// least is over half of the longer word's letters.
std::string nearest_word(std::string_view word,
                         const std::vector<std::string>& candidates);
/// The same for dotted keys, where a right last part in a wrong section is near
/// too ("run.batch_size" -> "data.batch_size"). There are many keys, so the
/// last part must be nearer: a third of its letters.
std::string nearest_key(std::string_view key,
                        const std::vector<std::string>& candidates);

} // namespace troupe
