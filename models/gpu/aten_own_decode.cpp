#include "models/gpu/aten_own_decode.hpp"

#include "models/gpu/aten_parts.hpp"
#include "models/gpu/kernels/decode_append.hpp"
#include "models/gpu/kernels/decode_attend.hpp"
#include "models/gpu/own_kernels.hpp"
#include "models/gpu/single_rows.hpp"
#include "models/gpu/stored_type.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace troupe::models {

namespace {

template <class T>
gpu::PagedCache<T> paged(KvCache& cache, std::int64_t layer,
                         std::int64_t heads) {
  using As = gpu::Stored<T>;
  return {As::at(cache.keys(layer, 0, 0)),
          As::at(cache.values(layer, 0, 0)),
          cache.table(),
          static_cast<std::int32_t>(cache.pages_per_slot()),
          static_cast<std::int32_t>(cache.page_tokens()),
          heads,
          cache.head_stride(),
          cache.value_stride()};
}

/// The bytes of keys and values, and of partial sums, of a launch.
struct AttendBytes {
  std::int64_t cached = 0;
  std::int64_t partial = 0;
};

AttendBytes attend_bytes(const DecodeAttention& what, std::int64_t rows,
                         const SingleRows& singles, std::int64_t chunks,
                         DType type) {
  return {2 * rows * singles.keys * what.kv_heads * what.head_dim
            * static_cast<std::int64_t>(size_bytes(type)),
          rows * what.heads * chunks * (what.head_dim + 2)
            * static_cast<std::int64_t>(sizeof(float))};
}

template <class T>
void attend_singles(at::Device device, const DecodeAttention& what,
                    const DecodeTokens& tokens, KvCache& cache, const T* qkv_RX,
                    T* context_RX) {
  const SingleRows singles(tokens.groups);
  const auto rows = static_cast<std::int64_t>(singles.rows.size());
  if (rows == 0)
    return;
  // The table would be a host-to-device copy: none if all rows are single.
  const at::Tensor table
    = singles.are_all ? at::Tensor{} : on_device(singles.rows, device);
  const auto* rows_R
    = table.defined() ? table.const_data_ptr<std::int64_t>() : nullptr;
  const std::int64_t chunks
    = gpu::pieces_of(singles.keys, gpu::DecodeAttend<T>::chunk);
  const gpu::AttendShape shape{what.heads,  what.head_dim, chunks,
                               what.window, what.scale,    what.cap};
  const std::int64_t parts = rows * what.heads * chunks;
  const at::Tensor partial
    = at::empty({parts * (what.head_dim + 2)},
                at::TensorOptions(at::kFloat).device(device));
  auto* softmax
    = reinterpret_cast<gpu::ChunkSoftmax*>(partial.mutable_data_ptr<float>());
  float* context = partial.mutable_data_ptr<float>() + 2 * parts;
  const AttendBytes bytes
    = attend_bytes(what, rows, singles, chunks, cache.type());
  const gpu::DecodeAttend<T> attend{
    shape,  paged<T>(cache, what.layer, what.kv_heads),
    qkv_RX, tokens.all.data(),
    rows_R, softmax,
    context};
  gpu::run_kernel(device, attend, attend.blocks(rows),
                  {"decode_attend", bytes.cached + bytes.partial});
  const gpu::JoinAttention<T> join{shape, softmax, context, rows_R, context_RX};
  gpu::run_kernel(device, join, join.blocks(rows),
                  {"join_attention", bytes.partial});
}

} // namespace

bool takes_own_decode(const DecodeAttention& what, const KvCache& cache,
                      ConstTypedPtr qkv_RX) {
  using Attend = gpu::DecodeAttend<float>;
  return cache.type() == qkv_RX.type() && what.head_dim <= Attend::most_dim
         && what.heads / what.kv_heads <= Attend::most_queries;
}

void own_decode(at::Device device, const DecodeAttention& what,
                const DecodeTokens& tokens, KvCache& cache, TypedPtr qkv_RX,
                TypedPtr context_RX) {
  const auto count = static_cast<std::int64_t>(tokens.all.size());
  gpu::with_stored(qkv_RX.type(), [&](auto as) {
    using T = typename decltype(as)::type;
    const float plus = what.norm == NormKind::rms_one_plus ? 1.0F : 0.0F;
    const gpu::DecodeAppend<T> append{
      as.at(qkv_RX),
      tokens.all.data(),
      paged<T>(cache, what.layer, what.kv_heads),
      what.rope != nullptr ? gpu::Rotation::of(*what.rope) : gpu::Rotation{},
      {what.q_norm_D, what.k_norm_D, what.norm_eps, plus},
      what.heads,
      what.head_dim};
    gpu::run_kernel(
      device, append, append.blocks(count),
      {"decode_append",
       2 * count * what.columns() * static_cast<std::int64_t>(sizeof(T))});
    attend_singles<T>(device, what, tokens, cache, as.at(qkv_RX),
                      as.at(context_RX));
  });
}

} // namespace troupe::models
