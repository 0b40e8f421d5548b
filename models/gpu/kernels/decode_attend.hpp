// Attention of tokens that are alone of their sequence in a pass of generation:
// each block reads a chunk of one head's cached keys and values once, for all
// queries that share them, and join_attention.hpp joins the chunks (split over
// keys, as in FlashDecoding). Scores, softmax and sums are fp32.
//
// R tokens, A heads, G key-value heads, Q = A / G queries that share keys, D
// head dim, C chunks of keys; one block per token, key-value head and chunk.
#pragma once

#include "models/gpu/kernels/join_attention.hpp"
#include "models/gpu/kernels/paged_cache.hpp"
#include "models/gpu/kernels/storage.hpp"
#include "models/kernels/decode_token.hpp"
#include "models/kernels/host_math.hpp"

#include <cmath>
#include <cstdint>

namespace troupe::models::gpu {

template <class T>
struct DecodeAttend {
  static constexpr int threads = 128;
  static constexpr int chunk = 256;
  static constexpr int most_dim = 256;
  static constexpr int most_queries = 8;
  static constexpr int lanes_per_query = threads / most_queries;
  struct Shared {
    float query[most_queries * most_dim];
    float score[most_queries * chunk];
    float part[threads];
    ChunkSoftmax found[most_queries];
  };

  AttendShape shape;
  PagedCache<T> cache;
  const T* qkv_RX = nullptr; ///< queries as DecodeAppend leaves them
  const DecodeToken* tokens = nullptr;
  const std::int64_t* rows_R = nullptr; ///< of qkv; null: all, in order
  ChunkSoftmax* softmax_RAC = nullptr;
  float* context_RACD = nullptr;

  std::int64_t blocks(std::int64_t rows) const {
    return rows * cache.heads * shape.chunks;
  }

  /// The keys of a block: positions [begin, end) of a slot, of which those
  /// before `seen` are not.
  struct Keys {
    std::int32_t slot;
    std::int64_t head;
    std::int32_t begin;
    std::int32_t end;
    std::int64_t seen;
  };

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    const std::int64_t part = block.index % shape.chunks;
    const std::int64_t kv_head = block.index / shape.chunks % cache.heads;
    const std::int64_t entry = block.index / shape.chunks / cache.heads;
    const std::int64_t row = rows_R != nullptr ? rows_R[entry] : entry;
    const DecodeToken token = tokens[row];
    const std::int32_t known = token.position + 1;
    const auto begin = static_cast<std::int32_t>(part) * chunk;
    const Keys keys{token.slot, kv_head, begin,
                    begin + chunk < known ? begin + chunk : known,
                    shape.window > 0 ? known - shape.window : 0};
    const int queries = static_cast<int>(shape.heads / cache.heads);
    const T* query = qkv_RX
                     + row * (shape.heads + 2 * cache.heads) * shape.head_dim
                     + kv_head * queries * shape.head_dim;
    block.each([&](int lane) {
      for (std::int64_t i = lane; i < queries * shape.head_dim; i += threads)
        shared.query[i] = to_float(query[i]) * shape.scale;
    });
    score(block, shared, keys, queries);
    exponentials(block, shared, keys.end - keys.begin);
    const std::int64_t first
      = (entry * shape.heads + kv_head * queries) * shape.chunks + part;
    block.each([&](int lane) {
      if (lane < queries)
        softmax_RAC[first + lane * shape.chunks] = shared.found[lane];
    });
    add_values(block, shared, keys, queries, first);
  }

  /// Computes the scores of all queries; each lane has keys of its own.
  TROUPE_KERNEL void score(Block<threads> block, Shared& shared,
                           const Keys& keys, int queries) const {
    block.each([&](int lane) {
      for (std::int32_t t = keys.begin + lane; t < keys.end; t += threads)
        score_key(shared, cache.key(keys.slot, t, keys.head), t - keys.begin,
                  t >= keys.seen, queries);
    });
  }

  /// Computes the scores of a key.
  TROUPE_KERNEL void score_key(Shared& shared, const T* key, std::int64_t at,
                               bool is_seen, int queries) const {
    float dot[most_queries] = {};
    for (std::int64_t d = 0; d < shape.head_dim; ++d) {
      const float k = to_float(key[d * cache.page_tokens]);
      for (int j = 0; j < most_queries; ++j)
        if (j < queries)
          dot[j] += shared.query[j * shape.head_dim + d] * k;
    }
    for (int j = 0; j < most_queries; ++j)
      shared.score[j * chunk + at]
        = is_seen && j < queries ? capped(dot[j]) : -INFINITY;
  }

  TROUPE_KERNEL float capped(float score) const {
    return shape.cap > 0 ? tanhf(score / shape.cap) * shape.cap : score;
  }

  /// Turns `count` scores of each query into exponentials, and finds their
  /// sums.
  TROUPE_KERNEL void exponentials(Block<threads> block, Shared& shared,
                                  int count) const {
    block.each([&](int lane) {
      const float* own = shared.score + lane / lanes_per_query * chunk;
      float top = -INFINITY;
      for (int t = lane % lanes_per_query; t < count; t += lanes_per_query)
        top = fmaxf(top, own[t]);
      shared.part[lane] = top;
    });
    block.each([&](int lane) {
      if (lane >= most_queries)
        return;
      float top = -INFINITY;
      for (int i = 0; i < lanes_per_query; ++i)
        top = fmaxf(top, shared.part[lane * lanes_per_query + i]);
      shared.found[lane].top = top;
    });
    block.each([&](int lane) {
      const int query = lane / lanes_per_query;
      const float top = shared.found[query].top;
      float total = 0;
      for (int t = lane % lanes_per_query; t < count; t += lanes_per_query) {
        float& score = shared.score[query * chunk + t];
        score = score == -INFINITY ? 0.0F : fast_exp(score - top);
        total += score;
      }
      shared.part[lane] = total;
    });
    block.each([&](int lane) {
      if (lane >= most_queries)
        return;
      float total = 0;
      for (int i = 0; i < lanes_per_query; ++i)
        total += shared.part[lane * lanes_per_query + i];
      shared.found[lane].sum = total;
    });
  }

  /// Adds up values by their exponentials; each lane has elements of its own.
  TROUPE_KERNEL void add_values(Block<threads> block, Shared& shared,
                                const Keys& keys, int queries,
                                std::int64_t first) const {
    block.each([&](int lane) {
      for (std::int64_t d = lane; d < shape.head_dim; d += threads)
        add_element(shared, keys, d, queries,
                    context_RACD + first * shape.head_dim + d);
    });
  }

  /// Adds up element d of the values, for all queries, page by page.
  TROUPE_KERNEL void add_element(const Shared& shared, const Keys& keys,
                                 std::int64_t d, int queries, float* to) const {
    float added[most_queries] = {};
    for (std::int32_t t = keys.begin; t < keys.end;) {
      const std::int32_t left = cache.page_tokens - t % cache.page_tokens;
      const std::int32_t end = t + left < keys.end ? t + left : keys.end;
      const T* value = cache.value(keys.slot, t, keys.head) + d;
      for (; t < end; ++t, value += cache.value_stride)
        add_value(shared.score + (t - keys.begin), to_float(*value), queries,
                  added);
    }
    for (int j = 0; j < most_queries; ++j)
      if (j < queries)
        to[j * shape.chunks * shape.head_dim] = added[j];
  }

  TROUPE_KERNEL static void add_value(const float* exponential, float value,
                                      int queries, float* added) {
    for (int j = 0; j < most_queries; ++j)
      if (j < queries)
        added[j] += exponential[j * chunk] * value;
  }
};

} // namespace troupe::models::gpu
