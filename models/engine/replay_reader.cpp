#include "models/engine/replay_reader.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <string>

namespace troupe::models {

namespace {

[[noreturn]] void replay_mistake(const std::string& expected,
                                 const std::string& got) {
  throw ConfigError({.place = {},
                     .path = "key routed_experts",
                     .expected = expected,
                     .got = got,
                     .hint = "the record that `generate` writes with the same "
                             "model"});
}

} // namespace

bool ReplayReader::in(const net::Rows& rows) {
  return rows.has("routed_experts");
}

void ReplayReader::read(std::span<const std::size_t> rows,
                        PackedSequences& packed) const {
  const auto width = static_cast<std::size_t>(
    shape_.experts.layers_before(shape_.num_layers) * shape_.experts.per_token);
  packed.tokens.experts_TW.assign(
    static_cast<std::size_t>(packed.tokens.num_tokens()) * width, -1);
  for (std::size_t s = 0; s < rows.size(); ++s) {
    const auto first = static_cast<std::size_t>(packed.cu_seqlens[s]);
    const auto length
      = static_cast<std::size_t>(packed.cu_seqlens[s + 1]) - first;
    const std::span<const std::int32_t> own = experts_.ids(rows[s]);
    if (own.empty())
      continue; // nothing was generated
    if (own.size() != length * width)
      replay_mistake(std::to_string(width) + " experts per token",
                     std::to_string(own.size()) + " for "
                       + std::to_string(length) + " tokens");
    take(own, width, first, packed);
  }
}

// Takes the record, `width` experts per token, of the sequence whose tokens
// begin at entry `first`.
void ReplayReader::take(std::span<const std::int32_t> own, std::size_t width,
                        std::size_t first, PackedSequences& packed) const {
  std::vector<std::int32_t>& all = packed.tokens.experts_TW;
  const auto known = [&](std::int32_t expert) {
    return expert >= 0 && expert < shape_.experts.count;
  };
  for (std::size_t i = 0; i * width < own.size(); ++i) {
    const auto token = own.subspan(i * width, width);
    const std::int64_t packed_at = packed.packed_L[first + i];
    if (token.front() < 0 || packed_at < 0)
      continue;
    const auto to = all.begin() + packed_at * static_cast<std::int64_t>(width);
    if (*to >= 0)
      continue;
    if (!std::ranges::all_of(token, known))
      replay_mistake("experts below " + std::to_string(shape_.experts.count),
                     "another one");
    std::ranges::copy(token, to);
  }
}

} // namespace troupe::models
