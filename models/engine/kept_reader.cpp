#include "models/engine/kept_reader.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <string>

namespace troupe::models {

namespace {

[[noreturn]] void kept_mistake(const std::string& expected,
                               const std::string& got) {
  throw ConfigError({.place = {},
                     .path = "key kept_ids",
                     .expected = expected,
                     .got = got,
                     .hint = "the masks that `generate` writes, and models "
                             "with one tokenizer"});
}

// Checks the mask of a token.
void kept_check(std::span<const std::int32_t> ids, std::int32_t token,
                std::int64_t vocab) {
  if (!ids.empty() && std::ranges::find(ids, token) == ids.end())
    kept_mistake("the token itself among the kept ones",
                 "a mask without " + std::to_string(token));
  for (const std::int32_t id : ids)
    if (id < 0 || id >= vocab)
      kept_mistake("ids of a vocabulary of " + std::to_string(vocab)
                     + " tokens",
                   "id " + std::to_string(id));
}

} // namespace

bool KeptReader::in(const net::Rows& rows) {
  return rows.has("kept_ids") && rows.has("kept_counts");
}

// Returns the masks of every token of the rows.
KeptTokens KeptReader::packed(std::span<const std::size_t> rows) const {
  KeptTokens all{.offsets_R1 = {0}, .ids = {}};
  std::size_t num_tokens = 0;
  std::size_t num_ids = 0;
  for (const std::size_t row : rows) {
    num_tokens += counts_.ids(row).size();
    num_ids += ids_.ids(row).size();
  }
  all.offsets_R1.reserve(num_tokens + 1);
  all.ids.reserve(num_ids);
  for (const std::size_t row : rows) {
    for (const std::int32_t count : counts_.ids(row))
      all.offsets_R1.push_back(all.offsets_R1.back() + std::max(count, 0));
    const std::span<const std::int32_t> own = ids_.ids(row);
    all.ids.insert(all.ids.end(), own.begin(), own.end());
    if (static_cast<std::int64_t>(all.ids.size()) != all.offsets_R1.back())
      kept_mistake("as many ids as kept_counts says",
                   std::to_string(own.size()) + " of a sample");
  }
  return all;
}

void KeptReader::read(std::span<const std::size_t> rows, std::int64_t vocab,
                      WantedTokens& wanted) const {
  const KeptTokens all = packed(rows);
  wanted.kept = {.offsets_R1 = {0}, .ids = {}};
  wanted.kept.offsets_R1.reserve(wanted.entries_R.size() + 1);
  wanted.kept.ids.reserve(all.ids.size()); // all that were drawn are wanted
  for (std::size_t r = 0; r < wanted.entries_R.size(); ++r) {
    const auto entry = static_cast<std::size_t>(wanted.entries_R[r]);
    TROUPE_CHECK(entry + 1 < all.offsets_R1.size(),
                 "a count of kept tokens for each token");
    const auto first = static_cast<std::size_t>(all.offsets_R1[entry]);
    const auto last = static_cast<std::size_t>(all.offsets_R1[entry + 1]);
    const auto own = std::span(all.ids).subspan(first, last - first);
    kept_check(own, wanted.targets_R[r], vocab);
    wanted.kept.ids.insert(wanted.kept.ids.end(), own.begin(), own.end());
    wanted.kept.offsets_R1.push_back(
      static_cast<std::int64_t>(wanted.kept.ids.size()));
  }
}

} // namespace troupe::models
