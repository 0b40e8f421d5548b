// Draws a token per row of logits (I2), as models/generate/sampler.hpp does:
// temperature, top-k, top-p, min-p, then the argmax of scaled logit plus Gumbel
// noise of the same Philox words. The filters cut the sorted tokens at a rank,
// which radix_select.hpp finds. Logits never leave the GPU: the host gets an id
// and a log-probability per row.
//
// R rows, V vocabulary; one block per row.
#pragma once

#include "models/data/philox.hpp"
#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/radix_select.hpp"
#include "models/gpu/kernels/storage.hpp"
#include "models/kernels/host_math.hpp"
#include "models/kernels/token_draw.hpp"

#include <cmath>
#include <cstdint>

namespace troupe::models::gpu {

/// Filters as the kernel computes them.
struct DrawOptions {
  float temperature = 1; ///< positive
  bool greedy = false;
  std::uint32_t top_k = 0; ///< 0: off; ties with the k-th are kept
  double top_p = 1;        ///< 1: off; equal logits by id
  double log_min_p = -INFINITY;
  bool filtered_logprobs = false; ///< log-probabilities among the kept tokens
};

/// The tokens of a row that filters keep.
struct DrawCut {
  std::uint64_t least = 0;      ///< lowest rank
  double log_min_p = -INFINITY; ///< least logit, counted from the largest

  TROUPE_KERNEL bool keeps(float logit, std::uint32_t id, float top) const {
    return token_rank(logit, id) >= least
           && (log_min_p == -INFINITY
               || double{logit} - double{top} >= log_min_p);
  }
};

template <class T>
struct DrawToken {
  static constexpr int threads = 1024;
  struct Best {
    float score;
    std::uint32_t id;
  };
  struct Shared {
    RadixSelect::Shared radix;
    std::uint64_t mass[threads];
    Best best[threads];
  };

  const T* logits_RV = nullptr;
  const DrawKey* keys_R = nullptr;
  DrawnToken* drawn_R = nullptr;
  std::uint32_t vocab = 0; ///< V, at most 2^22
  DrawOptions options;

  static std::int64_t blocks(std::int64_t rows) {
    return rows;
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    const float top = largest(block, shared);
    if (!(top > -INFINITY && top < INFINITY)) {
      block.each([&](int lane) {
        if (lane == 0)
          drawn_R[block.index] = {-1, 0};
      });
      return;
    }
    const DrawCut cut{least_kept(block, shared, top), options.log_min_p};
    block.each(
      [&](int lane) { draw_among(lane, block.index, cut, top, shared); });
    reduce(block, shared.best, [](Best a, Best b) { return better(a, b); });
    sum(block, shared.mass);
    block.each([&](int lane) {
      if (lane != 0)
        return;
      const std::uint32_t id = shared.best[0].id;
      const float total = static_cast<float>(shared.mass[0]) * 0x1p-40F;
      drawn_R[block.index] = {static_cast<std::int32_t>(id),
                              logit(block.index, id) - top - fast_log(total)};
    });
  }

  /// Returns a logit at the temperature; NaN becomes infinity.
  TROUPE_KERNEL float logit(std::int64_t row, std::uint32_t id) const {
    const float x = to_float(logits_RV[row * vocab + id]) / options.temperature;
    return x == x ? x : INFINITY;
  }

  /// Returns e^(logit - top) in units of 2^-40. Sums of integers are the same
  /// in any order.
  static TROUPE_KERNEL std::uint64_t mass_of(float logit, float top) {
    return static_cast<std::uint64_t>(fast_exp(logit - top) * 0x1p40F);
  }

  static TROUPE_KERNEL Best better(Best a, Best b) {
    const bool first = a.score > b.score || (a.score == b.score && a.id < b.id);
    return first ? a : b;
  }

  TROUPE_KERNEL float largest(Block<threads> block, Shared& shared) const {
    block.each([&](int lane) {
      Best mine{-INFINITY, vocab};
      for (auto id = static_cast<std::uint32_t>(lane); id < vocab;
           id += threads)
        mine = better(mine, {logit(block.index, id), id});
      shared.best[lane] = mine;
    });
    reduce(block, shared.best, [](Best a, Best b) { return better(a, b); });
    return block.uniform(shared.best[0].score);
  }

  /// Returns the mass of the tokens that a cut keeps.
  TROUPE_KERNEL std::uint64_t mass_of_kept(Block<threads> block, Shared& shared,
                                           const DrawCut& cut,
                                           float top) const {
    block.each([&](int lane) {
      std::uint64_t mine = 0;
      for (auto id = static_cast<std::uint32_t>(lane); id < vocab;
           id += threads) {
        const float x = logit(block.index, id);
        mine += cut.keeps(x, id, top) ? mass_of(x, top) : 0;
      }
      shared.mass[lane] = mine;
    });
    sum(block, shared.mass);
    return block.uniform(shared.mass[0]);
  }

  /// Returns the lowest rank that top-k and top-p keep; 0 without filters.
  TROUPE_KERNEL std::uint64_t least_kept(Block<threads> block, Shared& shared,
                                         float top) const {
    const auto rank = [&](std::uint32_t id) {
      return token_rank(logit(block.index, id), id);
    };
    std::uint64_t least = 0;
    if (options.top_k > 0 && options.top_k < vocab)
      least = radix_select(block, shared.radix,
                           {vocab, options.top_k, /*splits_ties=*/false}, rank,
                           [](std::uint64_t) { return std::uint64_t{1}; });
    if (options.top_p >= 1)
      return least;
    const std::uint64_t total
      = mass_of_kept(block, shared, {least, -INFINITY}, top);
    const double share = options.top_p * static_cast<double>(total);
    const auto whole = static_cast<std::uint64_t>(ceil(share));
    const std::uint64_t target = whole < 1 ? 1 : whole > total ? total : whole;
    return radix_select(block, shared.radix,
                        {vocab, target, /*splits_ties=*/true}, rank,
                        [&](std::uint64_t mine) {
                          return mine >= least
                                   ? mass_of(logit_of_rank(mine), top)
                                   : std::uint64_t{0};
                        });
  }

  /// Finds the best of a lane's tokens, and the mass of those that count for
  /// log-probabilities, in one pass: blocks of four ids, for which Philox has a
  /// word each.
  TROUPE_KERNEL void draw_among(int lane, std::int64_t row, const DrawCut& cut,
                                float top, Shared& shared) const {
    const DrawKey& name = keys_R[row];
    Best best{-INFINITY, vocab};
    std::uint64_t mass = 0;
    for (auto at = static_cast<std::uint32_t>(lane); 4 * at < vocab;
         at += threads) {
      const PhiloxBlock words = philox4x32_10(
        {name.key[0], name.key[1]}, {name.sample, name.position, at, 0});
      for (std::uint32_t i = 0; i < 4 && 4 * at + i < vocab; ++i) {
        const std::uint32_t id = 4 * at + i;
        const float x = logit(row, id);
        const float noise
          = options.greedy ? 0.0F : -fast_log(-fast_log(open_unit(words[i])));
        const bool kept = cut.keeps(x, id, top);
        if (kept)
          best = better(best, {x + noise, id});
        if (kept || !options.filtered_logprobs)
          mass += mass_of(x, top);
      }
    }
    shared.best[lane] = best;
    shared.mass[lane] = mass;
  }
};

} // namespace troupe::models::gpu
