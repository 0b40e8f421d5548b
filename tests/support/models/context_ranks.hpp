// Attention of whole sequences, and the same by the ranks of a cp group, one
// after the other in this process: rows are dealt out, keys gathered, results
// put together and gradients of keys added up in the order of ranks.
#pragma once

#include "models/kernels/backend.hpp"

#include <cstdint>
#include <vector>

namespace troupe::testing {

struct AttentionNumbers {
  std::vector<float> context_TX;
  std::vector<float> lse_AT;
  std::vector<float> d_qkv_TX;
};

struct AttentionInputs {
  models::AttentionShape shape; ///< of the whole sequences
  std::vector<float> qkv_TX;
  std::vector<float> d_context_TX;
};

/// Returns random rows of that shape.
AttentionInputs random_attention(const models::AttentionShape& shape);

AttentionNumbers whole_attention(models::Backend& backend,
                                 const AttentionInputs& in);

/// Cuts sequences of at least `2 ranks tile_rows` tokens.
AttentionNumbers ranks_attention(models::Backend& backend,
                                 const AttentionInputs& in, std::uint32_t ranks,
                                 std::uint64_t tile_rows);

/// Returns the largest difference of columns [first, first + count) of rows,
/// as a share of the largest number there.
double largest_difference(const std::vector<float>& found,
                          const std::vector<float>& wanted, std::int64_t width,
                          std::int64_t first, std::int64_t count);

} // namespace troupe::testing
