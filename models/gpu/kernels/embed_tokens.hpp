// Embeddings of a generation pass: to = factor * tokens[id] +
// positions[position], zeros where another rank has the token.
//
// R rows of H elements; a block per row.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"
#include "models/kernels/decode_token.hpp"

#include <cstdint>

namespace troupe::models::gpu {

template <class Table, class T>
struct EmbedTokens {
  static constexpr int threads = 256;
  struct Shared {};

  const Table* tokens_VH = nullptr;
  std::int64_t vocab = 0; ///< V, from the first token on
  std::int64_t first_token = 0;
  const Table* positions_PH = nullptr; ///< null: none
  const DecodeToken* rows_R = nullptr;
  T* to_RH = nullptr;
  std::int64_t width = 0; ///< H
  float factor = 1;
  const DrawnToken* drawn_N = nullptr; ///< of the draw before

  static std::int64_t blocks(std::int64_t rows) {
    return rows;
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared&) const {
    block.each([&](int lane) {
      const DecodeToken& token = rows_R[block.index];
      const std::int64_t row = known_id(token, drawn_N) - first_token;
      const bool known = row >= 0 && row < vocab;
      T* to = to_RH + block.index * width;
      for (std::int64_t j = lane; j < width; j += threads) {
        float x = known ? factor * to_float(tokens_VH[row * width + j]) : 0;
        if (positions_PH != nullptr)
          x += to_float(positions_PH[token.position * width + j]);
        store(to + j, x);
      }
    });
  }
};

} // namespace troupe::models::gpu
