#include "config/base/did_you_mean.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace troupe {

namespace {

std::string_view last_part(std::string_view key) {
  return key.substr(key.rfind('.') + 1); // npos + 1 is 0
}

template <class Distance>
std::string nearest_by(const std::vector<std::string>& candidates,
                       Distance&& distance) {
  std::string best;
  std::optional<std::size_t> best_distance;
  for (const auto& candidate : candidates) {
    const std::optional<std::size_t> now = distance(candidate);
    if (now && (!best_distance || *now < *best_distance)) {
      best_distance = now;
      best = candidate;
    }
  }
  return best;
}

/// Returns the edit distance if it is at most 1 / `share` of the longer word.
std::optional<std::size_t> near_distance(std::string_view a, std::string_view b,
                                         std::size_t share) {
  const auto distance = edit_distance(a, b);
  if (share * distance > std::max(a.size(), b.size()))
    return std::nullopt;
  return distance;
}

} // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // three rows of the usual table; words are short
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      const bool swapped
        = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped)
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string nearest_word(std::string_view word,
                         const std::vector<std::string>& candidates) {
  return nearest_by(candidates, [&](const std::string& candidate) {
    return near_distance(word, candidate, 2);
  });
}

std::string nearest_key(std::string_view key,
                        const std::vector<std::string>& candidates) {
  using Found = std::optional<std::size_t>;
  return nearest_by(candidates, [&](const std::string& candidate) -> Found {
    const auto last = near_distance(last_part(key), last_part(candidate), 3);
    if (!last)
      return std::nullopt;
    const auto section_wrong = 1 + 2 * *last;
    return std::min(2 * edit_distance(key, candidate), section_wrong);
  });
}

} // namespace troupe
