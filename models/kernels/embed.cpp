#include "models/kernels/embed.hpp"

#include <algorithm>

namespace troupe::models {

void embed(const Embedding& from, std::span<const DecodeToken> tokens,
           float* to) {
  const float* table = from.tokens.rows.floats();
  const float* places = from.positions.rows.floats();
  for (const DecodeToken& token : tokens) {
    const std::int64_t row
      = known_id(token, from.drawn_N.data()) - from.first_token;
    if (row < 0 || row >= from.tokens.count)
      std::fill_n(to, from.width, 0.0F);
    else
      for (std::int64_t j = 0; j < from.width; ++j)
        to[j] = from.factor * table[row * from.width + j];
    for (std::int64_t j = 0; j < from.width && places != nullptr; ++j)
      to[j] += places[token.position * from.width + j];
    to += from.width;
  }
}

} // namespace troupe::models
