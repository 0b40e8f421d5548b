#include "config/base/strategy.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace troupe {
namespace {

TEST(Strategy, RanksOfASampleCountAsRanksWithTheSameWeights) {
  const auto strategy = parse_strategy("d2c2t2z1");
  EXPECT_EQ(strategy, (Strategy{.dp = 4, .tp = 2, .zero = Zero::z1, .cp = 2}));
  EXPECT_EQ(strategy.num_devices(), 8U);
  EXPECT_EQ(strategy.sample_ranks(), 2U);
  EXPECT_EQ(parse_strategy("c2d2z1t2"), strategy) << "in any order";
}

TEST(Strategy, PrintsWhatItParses) {
  for (const auto* text : {"d1", "d4", "c2", "d2c2", "c4p2t2", "d2c8t4z3s",
                           "p2", "t2", "d8z1", "d2t4e4s"})
    EXPECT_EQ(to_string(parse_strategy(text)), text);
  EXPECT_EQ(to_string(parse_strategy("d1c2")), "c2");
}

TEST(Strategy, OfContextParallelismNeedsADegree) {
  for (const auto* text : {"c", "c0", "c2c2", "dc2"})
    EXPECT_THROW(parse_strategy(text), std::invalid_argument) << text;
}

TEST(Strategy, NeighboursOfATensorGroupShareASample) {
  const auto strategy = parse_strategy("d2c2t2");
  for (std::uint32_t i = 0; i < strategy.num_devices(); ++i) {
    const auto where = coordinate_of(strategy, i);
    EXPECT_EQ(context_rank_of(strategy, where), i / 2 % 2) << i;
    EXPECT_EQ(where.dp / strategy.cp, i / 4) << i;
    EXPECT_EQ(index_of(strategy, where), i);
  }
}

} // namespace
} // namespace troupe
