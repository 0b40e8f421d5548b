// Attention over pieces of sequences (attention_pieces.hpp) of
// aten_backend.hpp: by the fused kernel in one call for all of them, or one
// after the other. The fused kernel aligns the last query of a sequence with
// its last key, which is where those of a piece are. Its keys are adjacent, so
// pieces that share keys get copies of them, whose gradients are added up in
// fp32, in the order of the pieces.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/aten_parts.hpp"
#include "models/gpu/flash_attention.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace troupe::models {

namespace {

/// Pieces as the fused kernel sees them: those that have queries.
struct FlashPieces {
  std::vector<std::int32_t> query_starts{0};
  std::vector<std::int32_t> key_starts{0}; ///< in the copies
  std::vector<std::int64_t> rows;          ///< [copies] of keys
  std::int64_t most_queries = 0;
  std::int64_t most_keys = 0;

  explicit FlashPieces(const PieceShape& shape) {
    for (const AttentionPiece& piece : shape.pieces)
      if (piece.queries > 0)
        append(piece);
  }
  /// Returns whether the kernel's keys are all keys, each once.
  bool copies_keys(std::int64_t keys) const {
    return std::ssize(rows) != keys
           || std::ranges::adjacent_find(rows, std::ranges::greater_equal{})
                != rows.end();
  }

private:
  void append(const AttentionPiece& piece) {
    const std::size_t first = rows.size();
    rows.resize(first + static_cast<std::size_t>(piece.keys()));
    std::iota(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(),
              piece.first_key);
    query_starts.push_back(
      static_cast<std::int32_t>(piece.first_query + piece.queries));
    key_starts.push_back(static_cast<std::int32_t>(rows.size()));
    most_queries = std::max(most_queries, piece.queries);
    most_keys = std::max(most_keys, piece.keys());
  }
};

bool flash_takes_pieces(const AtenOptions& options, const PieceShape& shape) {
  return options.flash != nullptr && shape.heads.operands == DType::bf16
         && flash_takes_heads(shape.heads.head_dim, shape.heads.cap)
         && shape.queries > 0;
}

FlashCall flash_call(const AtenViews& on, const PieceShape& shape,
                     const FlashPieces& pieces, const PieceRows& rows) {
  const std::int64_t a = shape.heads.heads;
  const std::int64_t g = shape.heads.kv_heads;
  const std::int64_t d = shape.heads.head_dim;
  const at::ScalarType type = on.options().flash->operands();
  at::Tensor seen = on.view(rows.keys_KY, {shape.keys, 2 * g, d});
  if (pieces.copies_keys(shape.keys))
    seen = seen.index_select(0, on.cached(pieces.rows));
  seen = seen.to(type);
  return {on.view(rows.qkv_TX, {shape.queries, a + 2 * g, d})
            .narrow(1, 0, a)
            .to(type),
          seen.narrow(1, 0, g),
          seen.narrow(1, g, g),
          on.cached(pieces.query_starts),
          on.cached(pieces.key_starts),
          pieces.most_queries,
          pieces.most_keys,
          shape.heads.score_scale(),
          shape.heads.window > 0 ? shape.heads.window - 1 : -1};
}

AtenAttended read_piece(const AtenViews& on, const PieceShape& shape,
                        const AttentionPiece& piece, const PieceRows& rows) {
  const std::int64_t d = shape.heads.head_dim;
  const std::int64_t g = shape.heads.kv_heads;
  const std::int64_t x = shape.heads.columns();
  const std::int64_t y = shape.key_columns();
  const auto keys = [&](std::int64_t first_head) {
    return on.wide(rows.keys_KY + piece.first_key * y + first_head * d,
                   {g, piece.keys(), d}, {{d, y, 1}});
  };
  AtenAttended read{on.wide(rows.qkv_TX + piece.first_query * x,
                            {shape.heads.heads, piece.queries, d}, {{d, x, 1}}),
                    keys(0),
                    keys(g),
                    {}};
  read.scores_ALK
    = aten_masked_scores(shape.heads, read.queries_ALD, read.keys_GKD);
  return read;
}

// The context is exact in the kernel's type, because the kernel computed it.
void flash_pieces_backward(const AtenViews& on, const PieceShape& shape,
                           const PieceRows& rows, const PieceContext& found,
                           ConstTypedPtr d_context_TX, TypedPtr d_qkv_TX,
                           const at::Tensor& d_keys) {
  const std::int64_t a = shape.heads.heads;
  const std::int64_t d = shape.heads.head_dim;
  const FlashPieces pieces(shape);
  const auto output = [&](ConstTypedPtr x_TX) {
    return on.view(x_TX, {shape.queries, a, d})
      .to(on.options().flash->operands());
  };
  const FlashGradients grads = on.options().flash->backward(
    flash_call(on, shape, pieces, rows),
    {output(found.context_TX), on.view(found.lse_AT, {a, shape.queries})},
    output(d_context_TX));
  on.view(d_qkv_TX, {shape.queries, a + 2 * shape.heads.kv_heads, d})
    .narrow(1, 0, a)
    .copy_(grads.queries_TAD);
  const at::Tensor parts = at::cat({grads.keys_KGD, grads.values_KGD}, 1);
  if (!pieces.copies_keys(shape.keys)) {
    d_keys.copy_(parts);
    return;
  }
  at::Tensor sums
    = at::zeros(d_keys.sizes(), parts.options().dtype(at::kFloat));
  std::int64_t first = 0;
  for (const AttentionPiece& piece : shape.pieces) {
    if (piece.queries == 0)
      continue;
    sums.narrow(0, piece.first_key, piece.keys())
      .add_(parts.narrow(0, first, piece.keys()));
    first += piece.keys();
  }
  d_keys.copy_(sums);
}

void plain_pieces_backward(const AtenViews& on, const PieceShape& shape,
                           const PieceRows& rows, const PieceContext& found,
                           ConstTypedPtr d_context_TX, TypedPtr d_qkv_TX,
                           const at::Tensor& d_keys) {
  const std::int64_t a = shape.heads.heads;
  const std::int64_t d = shape.heads.head_dim;
  const std::int64_t x = shape.heads.columns();
  at::Tensor sums
    = at::zeros(d_keys.sizes(), d_keys.options().dtype(at::kFloat));
  for (const AttentionPiece& piece : shape.pieces) {
    if (piece.queries == 0)
      continue;
    const auto output = [&](ConstTypedPtr x_TX) {
      return on.wide(x_TX + piece.first_query * a * d, {a, piece.queries, d},
                     {{d, a * d, 1}});
    };
    const AtenAttendedGrads grads = aten_attend_backward(
      shape.heads, read_piece(on, shape, piece, rows),
      {output(found.context_TX),
       on.view(found.lse_AT + piece.first_query, {a, piece.queries, 1},
               {{shape.queries, 1, 1}})},
      output(d_context_TX));
    on.view(d_qkv_TX + piece.first_query * x, {a, piece.queries, d},
            {{d, x, 1}})
      .copy_(grads.queries_ALD);
    sums.narrow(0, piece.first_key, piece.keys())
      .add_(at::cat({grads.keys_GKD, grads.values_GKD}, 0).transpose(0, 1));
  }
  d_keys.copy_(sums);
}

} // namespace

void AtenBackend::piece_attention(const PieceShape& shape,
                                  const PieceRows& rows, TypedPtr context_TX,
                                  float* lse_AT) {
  shape.check();
  const std::int64_t a = shape.heads.heads;
  const std::int64_t d = shape.heads.head_dim;
  const std::int64_t tokens = shape.queries;
  if (flash_takes_pieces(options_, shape)) {
    const FlashContext found = options_.flash->forward(
      flash_call(*this, shape, FlashPieces(shape), rows));
    view(context_TX, {tokens, a, d}).copy_(found.context_TAD);
    if (lse_AT != nullptr)
      view(lse_AT, {a, tokens}).copy_(found.lse_AT);
    return;
  }
  for (const AttentionPiece& piece : shape.pieces) {
    if (piece.queries == 0)
      continue;
    const AtenAttended read = read_piece(*this, shape, piece, rows);
    const AtenContext found = aten_attend(read.scores_ALK, read.values_GKD);
    view(context_TX + piece.first_query * a * d, {a, piece.queries, d},
         {{d, a * d, 1}})
      .copy_(found.context_ALD);
    if (lse_AT != nullptr)
      view(lse_AT + piece.first_query, {a, piece.queries}, {{tokens, 1}})
        .copy_(found.lse_AL1.squeeze(2));
  }
}

void AtenBackend::piece_attention_backward(const PieceShape& shape,
                                           const PieceRows& rows,
                                           const PieceContext& found,
                                           ConstTypedPtr d_context_TX,
                                           const PieceGrads& to) {
  shape.check();
  const at::Tensor d_keys = view(
    to.d_keys_KY, {shape.keys, 2 * shape.heads.kv_heads, shape.heads.head_dim});
  if (flash_takes_pieces(options_, shape))
    flash_pieces_backward(*this, shape, rows, found, d_context_TX, to.d_qkv_TX,
                          d_keys);
  else
    plain_pieces_backward(*this, shape, rows, found, d_context_TX, to.d_qkv_TX,
                          d_keys);
}

} // namespace troupe::models
