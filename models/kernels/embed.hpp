// Embeddings of the tokens of a generation pass, which are in the device's
// memory: captured passes embed the tokens that are there when they run.
#pragma once

#include "models/kernels/decode_token.hpp"
#include "models/kernels/typed_ptr.hpp"

#include <cstdint>
#include <span>

namespace troupe::models {

/// A table [count, width] of the model.
struct EmbeddingTable {
  ConstTypedPtr rows;
  std::int64_t count = 0;
};

struct Embedding {
  std::int64_t width = 0;
  EmbeddingTable tokens; ///< of tokens from `first_token` on; the others
                         ///< are another tp rank's, and zeros here
  std::int64_t first_token = 0;
  float factor = 1;
  EmbeddingTable positions; ///< learned; null: none
  std::span<const DrawnToken> drawn_N
    = {}; ///< of the draw before, on the device; tokens may be `drawn_in` it
};

/// Computes to[i] = factor * tokens[id] + positions[position].
void embed(const Embedding& from, std::span<const DecodeToken> tokens,
           float* to);

} // namespace troupe::models
