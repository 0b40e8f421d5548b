// Small random damage to a text or to bytes: the usual ways in which files and
// frames arrive broken. Deterministic from the generator's state.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace troupe::fuzz {

using Random = std::mt19937_64;

/// `input` with one to four damages: bits, bytes, cuts, repeats, numbers at
/// their limits, pieces of `corpus`, and words that parsers care about.
std::string mutate(std::string input, const std::vector<std::string>& corpus,
                   Random& random);

} // namespace troupe::fuzz
