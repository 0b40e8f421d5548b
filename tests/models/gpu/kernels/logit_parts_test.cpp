// Statistics and gradients of logit rows by GPU kernels, run on the host,
// against the CPU's, for vocabularies split over ranks.
#include "models/gpu/kernels/logit_gradient.hpp"
#include "models/gpu/kernels/logit_parts.hpp"
#include "models/kernels/logits.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/lane_orders.hpp"

#include <cmath>

namespace troupe::models::gpu {
namespace {

using troupe::testing::bf16_numbers;
using troupe::testing::expect_near;
using troupe::testing::in_every_order;
using troupe::testing::read_back;
using troupe::testing::stored_as;

constexpr float split_inverse_t = 1.25F;
constexpr float split_inverse_cap = 1.0F / 30;

/// Rows of logits cut by columns over ranks.
struct SplitRows {
  std::int64_t rows;
  std::int64_t vocab; ///< of all ranks
  std::int64_t ranks;

  std::int64_t width() const { ///< of one rank
    return vocab / ranks;
  }
  std::vector<float> all() const {
    return bf16_numbers(rows * vocab, 11, 4);
  }
  std::vector<float> part(std::int64_t rank) const {
    const auto whole = all();
    std::vector<float> cut;
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto begin = whole.begin() + r * vocab + rank * width();
      cut.insert(cut.end(), begin, begin + width());
    }
    return cut;
  }
  /// Returns targets that count from the rank's first row.
  std::vector<std::int64_t> targets(std::int64_t rank) const {
    std::vector<std::int64_t> ids;
    for (std::int64_t r = 0; r < rows; ++r)
      ids.push_back((r * 37 + vocab - 1) % vocab - rank * width());
    return ids;
  }
};

constexpr SplitRows split_sizes[]
  = {{1, 5, 1}, {3, 1003, 1}, {7, 2 * 601, 2}, {300, 4 * 9, 4}};

using Parts = std::vector<RowPart>; // [P, R]

template <class T>
Parts parts_of(const SplitRows& split) {
  Parts all;
  for (std::int64_t rank = 0; rank < split.ranks; ++rank) {
    const auto logits = stored_as<T>(split.part(rank));
    const auto targets = split.targets(rank);
    const Parts parts = in_every_order([&](LaneOrder order) {
      Parts found(std::size_t(split.rows));
      run_on_host(LogitParts<T>{logits.data(), targets.data(), found.data(),
                                split.width(), split_inverse_t},
                  LogitParts<T>::blocks(split.rows), order);
      return found;
    });
    all.insert(all.end(), parts.begin(), parts.end());
  }
  return all;
}

Parts parts_wanted(const SplitRows& split) {
  Parts all(std::size_t(split.ranks * split.rows));
  for (std::int64_t rank = 0; rank < split.ranks; ++rank) {
    const auto targets = split.targets(rank);
    logit_parts({split.rows, split.width(), split_inverse_t, 0, targets},
                split.part(rank).data(), all.data() + rank * split.rows);
  }
  return all;
}

/// Log-probabilities, entropies and log-sum-exps.
struct Joined {
  explicit Joined(std::int64_t rows)
    : logprobs(std::size_t(rows)),
      entropy(std::size_t(rows)),
      lse(std::size_t(rows)) {}
  RowStatistics found() {
    return {logprobs.data(), entropy.data(), lse.data()};
  }
  std::vector<float> logprobs;
  std::vector<float> entropy;
  std::vector<float> lse;
};

Joined join_of(const SplitRows& split, const Parts& parts) {
  Joined joined(split.rows);
  in_every_order([&](LaneOrder order) {
    run_on_host(JoinLogitParts{parts.data(), split.ranks, split.rows,
                               split_inverse_t, joined.found()},
                JoinLogitParts::blocks(split.rows), order);
    return joined.lse;
  });
  return joined;
}

Joined joined_wanted(const SplitRows& split) {
  Joined joined(split.rows);
  const auto targets = split.targets(0);
  join_parts({split.rows, split.width(), split_inverse_t, 0, targets},
             std::uint32_t(split.ranks), parts_wanted(split).data(),
             joined.found());
  return joined;
}

TEST(GpuLogitParts, OfEachRankEqualTheCpus) {
  for (const SplitRows& split : split_sizes) {
    const Parts got = parts_of<float>(split);
    const Parts bf16 = parts_of<Bf16>(split);
    const Parts want = parts_wanted(split);
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i].top, want[i].top);
      EXPECT_EQ(got[i].target, want[i].target);
      ASSERT_NEAR(got[i].sum, want[i].sum, 2e-6 * want[i].sum);
      ASSERT_NEAR(got[i].weighted, want[i].weighted,
                  4e-6 * std::abs(want[i].weighted) + 1e-6);
      EXPECT_EQ(bf16[i].sum, got[i].sum) << "bf16 inputs are read exactly";
    }
  }
}

TEST(GpuLogitParts, JoinToTheCpusStatisticsForAnyNumberOfRanks) {
  for (const SplitRows& split : split_sizes) {
    const Joined got = join_of(split, parts_of<float>(split));
    const Joined want = joined_wanted(split);
    expect_near(got.logprobs, want.logprobs, 2e-6F, 2e-6F);
    expect_near(got.entropy, want.entropy, 4e-6F, 4e-6F);
    expect_near(got.lse, want.lse, 2e-6F, 2e-6F);
  }
}

TEST(GpuLogitParts, ASplitVocabularyHasTheStatisticsOfAWholeOne) {
  const SplitRows split{5, 4 * 129, 4};
  SplitRows whole = split;
  whole.ranks = 1;
  const Joined got = join_of(split, parts_of<float>(split));
  const Joined want = joined_wanted(whole);
  expect_near(got.logprobs, want.logprobs, 2e-6F, 2e-6F);
  expect_near(got.entropy, want.entropy, 4e-6F, 4e-6F);
}

/// Which gradients a loss has.
struct LossReads {
  bool logprobs;
  bool entropy;
};

RowGradients gradients_read(const LossReads& reads, const Joined& joined,
                            const std::vector<float>& d_logprobs,
                            const std::vector<float>& d_entropy) {
  return {reads.logprobs ? d_logprobs.data() : nullptr,
          reads.entropy ? d_entropy.data() : nullptr, joined.entropy.data(),
          joined.lse.data()};
}

void expect_gradient(const SplitRows& split, const LossReads& reads) {
  const Joined joined = joined_wanted(split);
  const auto d_logprobs = bf16_numbers(split.rows, 21);
  const auto d_entropy = bf16_numbers(split.rows, 22);
  const RowGradients gradients
    = gradients_read(reads, joined, d_logprobs, d_entropy);
  const auto run = [&]<class T>(std::int64_t rank, T) {
    const auto targets = split.targets(rank);
    return in_every_order([&](LaneOrder order) {
      auto logits = stored_as<T>(split.part(rank));
      run_on_host(LogitGradient<T>{logits.data(), targets.data(), gradients,
                                   split.width(), split_inverse_t,
                                   split_inverse_cap},
                  LogitGradient<T>::blocks(split.rows), order);
      return read_back(logits);
    });
  };
  for (std::int64_t rank = 0; rank < split.ranks; ++rank) {
    auto want = split.part(rank);
    const auto targets = split.targets(rank);
    logit_gradient(
      {split.rows, split.width(), split_inverse_t, split_inverse_cap, targets},
      gradients, want.data());
    const auto got = run(rank, 0.0F);
    expect_near(got, want, 4e-6F, 2e-6F);
    EXPECT_EQ(run(rank, Bf16{}), read_back(stored_as<Bf16>(got)));
  }
}

TEST(GpuLogitGradient, OfEachRankEqualsTheCpusAndIsRoundedOnceInBf16) {
  for (const SplitRows& split : split_sizes)
    for (const LossReads& reads :
         {LossReads{true, false}, LossReads{false, true},
          LossReads{true, true}})
      expect_gradient(split, reads);
}

} // namespace
} // namespace troupe::models::gpu
