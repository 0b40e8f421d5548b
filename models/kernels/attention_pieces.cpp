#include "models/kernels/attention_pieces.hpp"

#include "config/base/error.hpp"
#include "models/kernels/attention_parts.hpp"

namespace troupe::models {

namespace {

void check_piece(const PieceShape& shape, const AttentionPiece& piece,
                 std::int64_t query, std::int64_t key) {
  TROUPE_CHECK(piece.queries >= 0 && piece.first_query == query,
               "pieces have all queries, in their order");
  TROUPE_CHECK(piece.position >= 0 && piece.last_key() <= shape.keys,
               "a piece's keys are among the keys");
  TROUPE_CHECK(piece.first_key >= key, "pieces that share keys are neighbours");
}

} // namespace

void PieceShape::check() const {
  std::int64_t query = 0;
  std::int64_t key = 0;
  for (const AttentionFamily& family : piece_families(*this)) {
    std::int64_t end = key;
    for (std::size_t i = family.first; i < family.last; ++i) {
      check_piece(*this, pieces[i], query, key);
      query += pieces[i].queries;
      end = std::max(end, pieces[i].last_key());
    }
    key = end;
  }
  TROUPE_CHECK(query == queries, "pieces have all queries");
}

std::vector<AttentionFamily> piece_families(const PieceShape& shape) {
  std::vector<AttentionFamily> families;
  std::int64_t end = 0; // of the family's keys
  for (std::size_t i = 0; i < shape.pieces.size(); ++i) {
    const AttentionPiece& piece = shape.pieces[i];
    if (families.empty() || piece.first_key >= end)
      families.push_back({i, i, 0});
    families.back().last = i + 1;
    families.back().cost += static_cast<double>(piece.queries)
                            * static_cast<double>(piece.keys() + 64);
    end = std::max(end, piece.last_key());
  }
  return families;
}

HeadView piece_head(const PieceShape& shape, const AttentionPiece& piece,
                    std::int64_t kv_head, std::int64_t member) {
  const std::int64_t d = shape.heads.head_dim;
  const std::int64_t head
    = kv_head * (shape.heads.heads / shape.heads.kv_heads) + member;
  HeadView view;
  view.start = piece.first_query;
  view.length = piece.queries;
  view.past = piece.position;
  view.q = head * d;
  view.k = kv_head * d;
  view.v = (shape.heads.kv_heads + kv_head) * d;
  view.context = head * d;
  return view;
}

} // namespace troupe::models
