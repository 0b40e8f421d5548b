#include "models/generate/gumbel.hpp"

#include "config/base/error.hpp"
#include "models/kernels/host_math.hpp"
#include "models/kernels/host_simd.hpp"

#include <algorithm>

namespace troupe::models {
namespace {

constexpr std::uint32_t gumbel_num_blocks = 64; // of four ids, per pass

/// Words of `gumbel_num_blocks` consecutive blocks, in id order.
using GumbelWords = std::array<std::uint32_t, 4 * gumbel_num_blocks>;

[[gnu::always_inline]] inline void
philox_round(std::uint32_t& c0, std::uint32_t& c1, std::uint32_t& c2,
             std::uint32_t& c3, std::uint32_t key_0, std::uint32_t key_1) {
  const std::uint64_t product_0 = std::uint64_t{philox::multiplier_0} * c0;
  const std::uint64_t product_1 = std::uint64_t{philox::multiplier_1} * c2;
  c0 = static_cast<std::uint32_t>(product_1 >> 32) ^ c1 ^ key_0;
  c2 = static_cast<std::uint32_t>(product_0 >> 32) ^ c3 ^ key_1;
  c1 = static_cast<std::uint32_t>(product_1);
  c3 = static_cast<std::uint32_t>(product_0);
}

/// Computes philox4x32_10 over consecutive third counter words, laid out for
/// vectorization: each word array is one stream.
[[gnu::always_inline]] inline void philox_blocks(PhiloxKey key,
                                                 const DrawName& name,
                                                 std::uint32_t first_block,
                                                 GumbelWords& words) {
  constexpr std::uint32_t n = gumbel_num_blocks;
  alignas(64) std::uint32_t c0[n];
  alignas(64) std::uint32_t c1[n];
  alignas(64) std::uint32_t c2[n];
  alignas(64) std::uint32_t c3[n];
  const std::uint32_t w0 = philox::weyl_0;
  const std::uint32_t w1 = philox::weyl_1;
#pragma omp simd
  for (std::uint32_t i = 0; i < n; ++i) {
    std::uint32_t a = name.sample;
    std::uint32_t b = name.position;
    std::uint32_t c = first_block + i;
    std::uint32_t d = 0;
    philox_round(a, b, c, d, key[0], key[1]);
    philox_round(a, b, c, d, key[0] + w0, key[1] + w1);
    philox_round(a, b, c, d, key[0] + 2 * w0, key[1] + 2 * w1);
    philox_round(a, b, c, d, key[0] + 3 * w0, key[1] + 3 * w1);
    philox_round(a, b, c, d, key[0] + 4 * w0, key[1] + 4 * w1);
    philox_round(a, b, c, d, key[0] + 5 * w0, key[1] + 5 * w1);
    philox_round(a, b, c, d, key[0] + 6 * w0, key[1] + 6 * w1);
    philox_round(a, b, c, d, key[0] + 7 * w0, key[1] + 7 * w1);
    philox_round(a, b, c, d, key[0] + 8 * w0, key[1] + 8 * w1);
    philox_round(a, b, c, d, key[0] + 9 * w0, key[1] + 9 * w1);
    c0[i] = a;
    c1[i] = b;
    c2[i] = c;
    c3[i] = d;
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

} // namespace

void gumbel_noise(const DrawName& name, std::uint32_t first_id,
                  std::span<float> noise) {
  TROUPE_CHECK(first_id % 4 == 0, "noise starts at a block of four ids");
  const PhiloxKey key = philox_key(name);
  const std::size_t num_ids = noise.size();
  float* out = noise.data();
  on_best_isa([&]() __attribute__((always_inline)) {
    alignas(64) GumbelWords words;
    for (std::size_t at = 0; at < num_ids; at += words.size()) {
      philox_blocks(key, name, (first_id + static_cast<std::uint32_t>(at)) / 4,
                    words);
      const std::size_t count = std::min(words.size(), num_ids - at);
#pragma omp simd
      for (std::size_t i = 0; i < count; ++i)
        out[at + i] = -fast_log(-fast_log(open_unit(words[i])));
    }
  });
}

} // namespace troupe::models
