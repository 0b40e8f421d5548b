#include "config/base/error.hpp"
#include "net/data_plane/stash.hpp"

#include <gmock/gmock.h>

#include <thread>

namespace troupe::net {
namespace {

using ::testing::ElementsAre;

const std::vector<std::string> kTokens{"tokens"};

std::vector<SampleId> stash_ids(std::initializer_list<std::uint32_t> numbers) {
  std::vector<SampleId> result;
  for (auto number : numbers)
    result.emplace_back(number);
  return result;
}

/// Each sample has two elements: 10 s and 10 s + 1.
Rows two_each(std::initializer_list<std::uint32_t> numbers) {
  std::vector<std::uint32_t> lengths(numbers.size(), 2);
  std::vector<std::int64_t> values;
  for (auto sample : numbers) {
    values.push_back(sample * 10);
    values.push_back(sample * 10 + 1);
  }
  return Rows(stash_ids(numbers),
              {make_column("tokens", DType::i64, lengths, values.data())});
}

TEST(Stash, ReturnsRowsOfSeveralPutsInTheRequestedOrder) {
  Stash stash;
  stash.put(StepId(4), two_each({0, 1}));
  stash.put(StepId(4), two_each({3, 2}));
  const Rows rows = stash.get(StepId(4), kTokens, stash_ids({2, 0, 3}));
  EXPECT_THAT(rows.at("tokens").as<std::int64_t>(),
              ElementsAre(20, 21, 0, 1, 30, 31));
}

TEST(Stash, SharesMemoryOfRowsRequestedAsPut) {
  Stash stash;
  Rows rows = two_each({5, 6});
  const auto* data = rows.at("tokens").data.data();
  stash.put(StepId(0), rows);
  EXPECT_EQ(
    stash.get(StepId(0), kTokens, stash_ids({5, 6})).at("tokens").data.data(),
    data);
  EXPECT_EQ(
    stash.gather(StepId(0), kTokens, stash_ids({5, 6}))[0].pieces.size(), 1u);
}

TEST(Stash, ARowHasOneHolder_I6) {
  Stash stash;
  stash.put(StepId(0), two_each({0, 1}));
  EXPECT_THROW(stash.put(StepId(0), two_each({2, 1})), InvariantError);
  EXPECT_FALSE(stash.has(StepId(0), "tokens", SampleId(2))) << "all or nothing";
  stash.put(StepId(1), two_each({0, 1})); // another step is another row
}

TEST(Stash, NamesAMissingRow) {
  Stash stash;
  stash.put(StepId(3), two_each({0}));
  try {
    stash.get(StepId(3), kTokens, stash_ids({0, 9}));
    FAIL();
  } catch (const InvariantError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("sample 9"));
  }
  EXPECT_THROW(stash.get(StepId(2), kTokens, stash_ids({0})), InvariantError);
}

TEST(Stash, MemoryIsFlatOverSteps_I6) {
  Stash stash;
  for (std::uint32_t step = 0; step < 200; ++step) {
    stash.put(StepId(step), two_each({0, 1, 2}));
    EXPECT_EQ(stash.size_bytes(), 48u);
    stash.drop(StepId(step));
  }
  EXPECT_EQ(stash.size_bytes(), 0u);
  EXPECT_EQ(stash.num_steps(), 0u);
}

TEST(Stash, ReadersKeepDroppedRowsAlive) {
  Stash stash;
  stash.put(StepId(0), two_each({4}));
  const Rows rows = stash.get(StepId(0), kTokens, stash_ids({4}));
  stash.drop(StepId(0));
  EXPECT_THAT(rows.at("tokens").as<std::int64_t>(), ElementsAre(40, 41));
  EXPECT_FALSE(stash.has(StepId(0), "tokens", SampleId(4)));
}

TEST(Stash, AcceptsPutsFromSeveralThreads) {
  Stash stash;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 100; ++i) {
        stash.put(StepId(0), two_each({t * 100 + i}));
        stash.get(StepId(0), kTokens, stash_ids({t * 100 + i}));
      }
    });
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(stash.size_bytes(), 400u * 16);
}

} // namespace
} // namespace troupe::net
