// The cut of sorted tokens by radix, run on the host, against sorting them.
#include "models/gpu/kernels/radix_select.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace troupe::models::gpu {
namespace {

/// A weight that grows with the logit and is 0 for some.
constexpr std::uint64_t cut_weight(float logit) {
  return logit < -3 ? 0 : static_cast<std::uint64_t>((logit + 4) * 1000);
}

struct CutBody {
  static constexpr int threads = 128;
  using Shared = RadixSelect::Shared;

  const float* logits = nullptr;
  RadixTarget target;
  bool counts = false; ///< a token weighs 1
  std::uint64_t* least = nullptr;

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    const std::uint64_t cut = radix_select(
      block, shared, target,
      [&](std::uint32_t id) { return token_rank(logits[id], id); },
      [&](std::uint64_t rank) {
        return counts ? std::uint64_t{1} : cut_weight(logit_of_rank(rank));
      });
    block.each([&](int lane) {
      if (lane == 0)
        *least = cut;
    });
  }
};

/// Numbers in steps of a half: many are equal.
std::vector<float> tied_logits(std::int64_t count, std::uint64_t seed) {
  auto logits = troupe::testing::bf16_numbers(count, seed, 2);
  for (float& x : logits)
    x = std::round(2 * x) / 2;
  return logits;
}

/// Returns which ids are kept, by sorting.
std::vector<bool> kept_by_sorting(const std::vector<float>& logits,
                                  const RadixTarget& target, bool counts) {
  std::vector<std::size_t> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = i;
  std::stable_sort(ids.begin(), ids.end(), [&](std::size_t a, std::size_t b) {
    return logits[a] > logits[b];
  });
  std::vector<bool> kept(logits.size());
  std::uint64_t total = 0;
  float last = 0;
  for (const std::size_t id : ids) {
    const bool tied = !target.splits_ties && logits[id] == last;
    if (total >= target.weight && !tied)
      break;
    kept[id] = true;
    last = logits[id];
    total += counts ? 1 : cut_weight(logits[id]);
  }
  return kept;
}

void expect_the_same_cut(const std::vector<float>& logits, bool counts,
                         bool splits_ties) {
  std::uint64_t total = 0;
  for (const float x : logits)
    total += counts ? 1 : cut_weight(x);
  for (const std::uint64_t part : {1, 7, 50, 93, 100}) {
    const RadixTarget target{std::uint32_t(logits.size()),
                             std::max<std::uint64_t>(1, total * part / 100),
                             splits_ties};
    const auto least = troupe::testing::in_every_order([&](LaneOrder order) {
      std::vector<std::uint64_t> cut(1);
      run_on_host(CutBody{logits.data(), target, counts, cut.data()}, 1, order);
      return cut;
    });
    const auto want = kept_by_sorting(logits, target, counts);
    for (std::size_t id = 0; id < logits.size(); ++id)
      ASSERT_EQ(token_rank(logits[id], std::uint32_t(id)) >= least[0], want[id])
        << "id " << id << " at " << part << " %";
  }
}

TEST(GpuRadixSelect, CutsWhereSortingWouldWithTiesSplitById) {
  for (const bool counts : {false, true})
    for (const bool splits_ties : {false, true}) {
      expect_the_same_cut(tied_logits(1, 1), counts, splits_ties);
      expect_the_same_cut(tied_logits(333, 2), counts, splits_ties);
      expect_the_same_cut(troupe::testing::bf16_numbers(500, 3), counts,
                          splits_ties);
      expect_the_same_cut(std::vector<float>(200, -0.5F), counts, splits_ties);
    }
}

TEST(GpuRadixSelect, RanksSortByLogitThenByIdAndKeepTheLogit) {
  const std::vector<float> falling{INFINITY, 3.5F,   1e-40F, 0.0F,
                                   -1e-40F,  -3.25F, -1e30F, -INFINITY};
  for (std::size_t i = 0; i < falling.size(); ++i) {
    EXPECT_EQ(logit_of_rank(token_rank(falling[i], 77)), falling[i]);
    EXPECT_GT(token_rank(falling[i], 5), token_rank(falling[i], 6));
    const std::uint64_t before
      = i == 0 ? ~std::uint64_t{0}
               : token_rank(falling[i - 1], (1U << token_id_bits) - 1);
    EXPECT_GT(before, token_rank(falling[i], 0));
  }
  EXPECT_EQ(token_rank(-0.0F, 9), token_rank(0.0F, 9)) << "equal logits";
}

} // namespace
} // namespace troupe::models::gpu
