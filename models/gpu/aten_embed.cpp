// Embeddings of generation of aten_backend.hpp.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/aten_parts.hpp"
#include "models/gpu/kernels/embed_tokens.hpp"
#include "models/gpu/own_kernels.hpp"
#include "models/gpu/stored_type.hpp"

#include <ATen/ATen.h>

namespace troupe::models {

namespace {

/// Returns the bytes that are read and written: a row of each table, the
/// result.
std::int64_t embed_bytes(const Embedding& from, std::int64_t rows, DType type) {
  std::size_t of_number
    = size_bytes(type) + size_bytes(from.tokens.rows.type());
  if (from.positions.rows)
    of_number += size_bytes(from.positions.rows.type());
  return rows * from.width * static_cast<std::int64_t>(of_number);
}

void own_embed(at::Device device, const Embedding& from,
               std::span<const DecodeToken> tokens, TypedPtr to) {
  const auto rows = static_cast<std::int64_t>(tokens.size());
  gpu::with_stored(from.tokens.rows.type(), [&](auto table) {
    gpu::with_stored(to.type(), [&](auto as) {
      using Kernel = gpu::EmbedTokens<typename decltype(table)::type,
                                      typename decltype(as)::type>;
      gpu::run_kernel(
        device,
        Kernel{table.at(from.tokens.rows), from.tokens.count, from.first_token,
               table.or_null(from.positions.rows), tokens.data(), as.at(to),
               from.width, from.factor, from.drawn_N.data()},
        Kernel::blocks(rows),
        {"embed_tokens", embed_bytes(from, rows, to.type())});
    });
  });
}

/// Returns the ids of tokens that may be in the draw before.
at::Tensor known_ids(const AtenViews& on, const at::Tensor& ids_R,
                     std::span<const DrawnToken> drawn_N) {
  constexpr std::int64_t numbers = sizeof(DrawnToken) / sizeof(std::int32_t);
  const auto count = static_cast<std::int64_t>(drawn_N.size());
  const at::Tensor drawn
    = on.view_of_ints(&drawn_N.data()->id, {count}, {{numbers}});
  const at::Tensor rows = (-1 - ids_R).clamp(0, count - 1);
  return at::where(ids_R < 0, drawn.index_select(0, rows).to(at::kLong), ids_R);
}

} // namespace

void AtenBackend::embed(const Embedding& from,
                        std::span<const DecodeToken> tokens, TypedPtr to) {
  const EmbeddingTable& places = from.positions;
  const bool alike
    = !places.rows || places.rows.type() == from.tokens.rows.type();
  if (options_.own_kernels && alike)
    return own_embed(device_, from, tokens, to);
  const auto count = static_cast<std::int64_t>(tokens.size());
  const AtenRows rows = aten_rows(*this, tokens);
  const at::Tensor ids
    = (from.drawn_N.empty() ? rows.ids_R
                            : known_ids(*this, rows.ids_R, from.drawn_N))
      - from.first_token;
  const at::Tensor elsewhere
    = (ids < 0).logical_or(ids >= from.tokens.count).unsqueeze(1);
  const auto picked = [&](const EmbeddingTable& table, const at::Tensor& at) {
    return view(table.rows, {table.count, from.width})
      .index_select(0, at)
      .to(at::kFloat);
  };
  at::Tensor found
    = picked(from.tokens, ids.clamp(0, from.tokens.count - 1)) * from.factor;
  found.masked_fill_(elsewhere, 0);
  if (places.rows)
    found.add_(picked(places, rows.positions_R));
  view(to, {count, from.width}).copy_(found);
}

} // namespace troupe::models
