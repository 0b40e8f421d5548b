#include "models/transformer/shared_prompt.hpp"

#include "config/base/error.hpp"

#include <map>
#include <string_view>

namespace troupe::models {

namespace {

using TokenSpan = std::span<const std::int32_t>;

// Sequences with one prompt, and the number of its tokens that they share.
struct PromptFamily {
  std::vector<std::size_t> members;
  std::int64_t shared = 0;
};

std::vector<PromptFamily>
prompt_families(std::span<const TokenSpan> sequences,
                std::span<const std::int64_t> shareable) {
  std::vector<PromptFamily> families;
  std::map<std::string_view, std::size_t> of_prompt;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const auto length = shareable.empty() ? 0 : shareable[s];
    const TokenSpan prompt
      = sequences[s].first(static_cast<std::size_t>(length));
    const auto [found, is_new] = of_prompt.emplace(
      std::string_view(reinterpret_cast<const char*>(prompt.data()),
                       prompt.size_bytes()),
      families.size());
    if (is_new || prompt.empty())
      families.push_back({{s}, 0});
    else {
      families[found->second].members.push_back(s);
      families[found->second].shared = length;
    }
  }
  return families;
}

// Appends `ids` as a packed sequence that continues `prefix` (-1: none); its
// first token has position `position`.
void append(PackedTokens& to, TokenSpan ids, std::int64_t position,
            std::int32_t prefix) {
  to.ids_T.insert(to.ids_T.end(), ids.begin(), ids.end());
  for (std::size_t i = 0; i < ids.size(); ++i)
    to.positions_T.push_back(
      static_cast<std::int32_t>(position + static_cast<std::int64_t>(i)));
  to.cu_seqlens.push_back(static_cast<std::int64_t>(to.ids_T.size()));
  to.continues.push_back(prefix);
}

} // namespace

PackedSequences::PackedSequences(std::span<const TokenSpan> sequences)
  : cu_seqlens{0} {
  for (const TokenSpan ids : sequences) {
    ids_L.insert(ids_L.end(), ids.begin(), ids.end());
    cu_seqlens.push_back(static_cast<std::int64_t>(ids_L.size()));
  }
  packed_L.resize(ids_L.size(), -1);
}

PackedSequences
pack_shared(std::span<const std::span<const std::int32_t>> sequences,
            std::span<const std::int64_t> shareable) {
  TROUPE_CHECK(shareable.empty() || shareable.size() == sequences.size(),
               "a shareable length a sequence");
  PackedSequences packed(sequences);
  packed.tokens.cu_seqlens.push_back(0);
  for (const PromptFamily& family : prompt_families(sequences, shareable)) {
    const std::int64_t shared_at = packed.tokens.num_tokens();
    const auto shared = static_cast<std::size_t>(family.shared);
    std::int32_t prefix = -1;
    if (shared > 0) {
      prefix = static_cast<std::int32_t>(packed.tokens.num_sequences());
      append(packed.tokens, sequences[family.members.front()].first(shared), 0,
             -1);
    }
    for (const std::size_t s : family.members) {
      const std::int64_t own_at
        = packed.tokens.num_tokens() - static_cast<std::int64_t>(shared);
      append(packed.tokens, sequences[s].subspan(shared), family.shared,
             prefix);
      const auto first = static_cast<std::size_t>(packed.cu_seqlens[s]);
      for (std::size_t i = 0; i < sequences[s].size(); ++i)
        packed.packed_L[first + i]
          = static_cast<std::int64_t>(i) + (i < shared ? shared_at : own_at);
    }
  }
  return packed;
}

} // namespace troupe::models
