#include "config/base/error.hpp"
#include "net/base/rows.hpp"

#include <gmock/gmock.h>

#include <numeric>

namespace troupe::net {
namespace {

using ::testing::ElementsAre;

std::vector<SampleId> ids(std::initializer_list<std::uint32_t> numbers) {
  std::vector<SampleId> result;
  for (auto number : numbers)
    result.emplace_back(number);
  return result;
}

/// Sample s has s elements: s*10, s*10+1, ...
Rows numbered_rows(std::initializer_list<std::uint32_t> numbers,
                   const std::string& key = "tokens") {
  std::vector<std::uint32_t> lengths(numbers);
  std::vector<std::int32_t> values;
  for (auto sample : numbers)
    for (std::uint32_t i = 0; i < sample; ++i)
      values.push_back(static_cast<std::int32_t>(sample * 10 + i));
  return Rows(ids(numbers),
              {make_column(key, DType::i32, lengths, values.data())});
}

TEST(Buffer, IsAlignedAndShared) {
  Buffer buffer = make_buffer(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
  Buffer part = buffer.slice(64, 36);
  buffer = {};
  part.as<std::uint8_t>()[35] = 7; // still alive
  EXPECT_EQ(part.as<std::uint8_t>()[35], 7);
  EXPECT_THROW(part.slice(30, 7), InvariantError);
}

TEST(Buffer, WrapsForeignMemoryUntilTheLastCopyIsDestroyed) {
  auto memory = std::make_shared<std::vector<std::byte>>(8);
  std::weak_ptr<std::vector<std::byte>> watch = memory;
  Buffer buffer = wrap_buffer(memory->data(), 8, memory);
  memory.reset();
  Buffer copy = buffer;
  buffer = {};
  EXPECT_FALSE(watch.expired());
  copy = {};
  EXPECT_TRUE(watch.expired());
}

TEST(Rows, ColumnsThatDoNotFitAreRefused) {
  auto column = make_column("tokens", DType::i32, {1, 2});
  EXPECT_THROW(Rows(ids({1}), {column}), InvariantError);
  EXPECT_THROW(Rows(ids({1, 1}), {column}), InvariantError);
  EXPECT_THROW(Rows(ids({1, 2}), {column, column}), InvariantError);
  column.data = column.data.slice(0, 8);
  EXPECT_THROW(Rows(ids({1, 2}), {column}), InvariantError);
  EXPECT_THROW(numbered_rows({1}).at("values"), InvariantError);
  EXPECT_THROW(numbered_rows({1}).at("tokens").as<double>(), InvariantError);
}

TEST(Rows, SelectPacksInTheRequestedOrder) {
  const Rows rows = numbered_rows({3, 1, 0, 2});
  const Rows chosen = select(rows, ids({2, 0, 3}));
  EXPECT_THAT(chosen.at("tokens").lengths, ElementsAre(2, 0, 3));
  EXPECT_THAT(chosen.at("tokens").as<std::int32_t>(),
              ElementsAre(20, 21, 30, 31, 32));
  EXPECT_THAT(chosen.at("tokens").offsets(), ElementsAre(0, 2, 2, 5));
  EXPECT_THROW(select(rows, ids({7})), InvariantError);
}

TEST(Rows, SelectOfEverythingSharesTheMemory) {
  const Rows rows = numbered_rows({3, 1});
  EXPECT_EQ(select(rows, rows.samples).at("tokens").data.data(),
            rows.at("tokens").data.data());
}

TEST(Rows, ConcatSortsBySample) {
  const std::vector<Rows> parts{numbered_rows({2, 1}), numbered_rows({3})};
  const Rows all = concat(parts);
  EXPECT_EQ(all.samples, ids({1, 2, 3}));
  EXPECT_THAT(all.at("tokens").as<std::int32_t>(),
              ElementsAre(10, 20, 21, 30, 31, 32));
  EXPECT_EQ(all.size_bytes(), 24u);
  const std::vector<Rows> twice{parts[0], parts[0]};
  EXPECT_THROW(concat(twice), InvariantError);
  const std::vector<Rows> other{parts[0], numbered_rows({3}, "values")};
  EXPECT_THROW(concat(other), InvariantError);
}

TEST(Rows, MergeAlignsColumnsBySample) {
  const std::vector<Rows> parts{numbered_rows({2, 1}, "a"),
                                numbered_rows({1, 2}, "b")};
  const Rows both = merge(parts);
  EXPECT_THAT(both.at("b").as<std::int32_t>(), ElementsAre(20, 21, 10));
  const std::vector<Rows> clash{parts[0], parts[0]};
  EXPECT_THROW(merge(clash), InvariantError);
}

} // namespace
} // namespace troupe::net
