// The move of an EMA model against updating the whole model at once: between
// random layouts, from memory of this process and of another, the same bits.
#include "models/kernels/ema_update.hpp"
#include "models/parallel/weight_move.hpp"
#include "net/base/memory_count.hpp"
#include "net/base/page_block.hpp"
#include "net/data_plane/data_plane.hpp"

#include <gtest/gtest.h>

#include "tests/support/net/far_pages.hpp"
#include "tests/support/plans/toy_model.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <numeric>
#include <random>
#include <thread>

namespace {
std::atomic<std::uint64_t> allocations = 0; ///< of all threads
} // namespace

#ifndef __SANITIZE_ADDRESS__ // which has its own allocator
extern "C" {
void* __libc_malloc(std::size_t bytes); // NOLINT: the name of the C library
/// Counts what `new` calls, too.
void* malloc(std::size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
}
#endif

namespace troupe::models {
namespace {

using Random = std::mt19937_64;
using Tensors = std::vector<std::vector<float>>; ///< by parameter, whole

Tensors random_tensors(const std::vector<ParameterShape>& model,
                       Random& random) {
  std::normal_distribution<float> draw;
  Tensors tensors;
  for (const auto& shape : model)
    for (auto& value :
         tensors.emplace_back(static_cast<std::size_t>(shape.num_elements())))
      value = draw(random);
  return tensors;
}

/// One device's flat buffer.
std::vector<float> plane_of(const std::vector<ParameterShape>& model,
                            const plans::Shard& shard, const Tensors& tensors) {
  std::vector<float> plane(shard.size_bytes / sizeof(float), 0.F);
  for (const auto& box : shard.boxes) {
    auto* to = plane.data() + box.offset_bytes / sizeof(float);
    for (auto row = box.row0; row < box.row1; ++row)
      for (auto col = box.col0; col < box.col1; ++col)
        *to++ = tensors[box.parameter][static_cast<std::size_t>(
          row * model[box.parameter].cols + col)];
  }
  return plane;
}

plans::Layout random_layout(const std::vector<ParameterShape>& model,
                            Random& random) {
  Strategy strategy{.dp = static_cast<std::uint32_t>(1 + random() % 2),
                    .pp = static_cast<std::uint32_t>(1 + random() % 3),
                    .tp = static_cast<std::uint32_t>(1 + random() % 3)};
  if (random() % 3 == 0)
    strategy = {.dp = 3, .zero = Zero::z3};
  std::vector<Rank> devices;
  for (std::uint32_t i = 0; i < strategy.num_devices(); ++i)
    devices.emplace_back(i);
  std::ranges::shuffle(devices, random);
  return plans::make_layout(model, strategy, devices, DType::f32);
}

std::span<std::byte> bytes_of(std::vector<float>& plane) {
  return std::as_writable_bytes(std::span<float>(plane));
}

/// Data planes of two processes, here and there; to be declared after the
/// memory that they export: a pull may end before the write that served it has
/// returned.
struct TwoPlanes {
  net::DataPlane here{{.self = WorkerId{0}, .token = "t"}};
  net::DataPlane there{{.self = WorkerId{1}, .token = "t"}};

  TwoPlanes() {
    here.set_peer(WorkerId{1}, "127.0.0.1", there.port());
    there.set_peer(WorkerId{0}, "127.0.0.1", here.port());
  }
};

TEST(EmaUpdate, IsTheWeightedSumRoundedOnce) {
  std::vector<float> target = {1.F, -2.F, 0.1F, 0.F, 1e-30F};
  const std::vector<float> incoming = {3.F, 2.F, 0.7F, 0.F, -1e30F};
  auto expected = target;
  const double own = 0.9F;
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] = static_cast<float>(
      own * double(expected[i]) + double(float(1 - own)) * double(incoming[i]));
  ema_update(target, incoming, 0.9);
  EXPECT_EQ(target, expected);
}

TEST(EmaUpdate, DecayZeroTakesTheNewWeightsAndOneKeepsTheOld) {
  const std::vector<float> own = {1.F, -2.F, 0.1F}, other = {5.F, 0.3F, -7.F};
  auto target = own;
  ema_update(target, other, 1);
  EXPECT_EQ(target, own);
  ema_update(target, other, 0);
  EXPECT_EQ(target, other);
}

TEST(WeightMove, AllocatesNothingWhenSourcesAreAddressable) {
  Random random(3);
  TwoPlanes planes;
  const auto model = troupe::testing::toy_model(3, 7, /*tied=*/false);
  const std::vector<Rank> two = {Rank{0}, Rank{1}},
                          three = {Rank{0}, Rank{1}, Rank{2}};
  const auto source = plans::make_layout(model, {.tp = 2}, two, DType::f32);
  const auto target
    = plans::make_layout(model, {.dp = 3, .zero = Zero::z3}, three, DType::f32);
  const auto tensors = random_tensors(model, random);
  std::map<Rank, std::vector<float>> sources;
  for (const auto& shard : source.shards)
    sources[shard.device] = plane_of(model, shard, tensors);
  const auto plan = plans::move_plan(source, target, {.devices_per_node = 3});
  for (const auto& shard : target.shards) {
    WeightMove move(
      plans::transfers_to(plan, shard.device),
      [&](Rank from) {
        return PlaneSource{.worker = WorkerId{0},
                           .id = from.value,
                           .bytes = bytes_of(sources.at(from))};
      },
      planes.here);
    std::vector<float> plane(shard.size_bytes / sizeof(float));
    const auto before = allocations.load();
    move.run(bytes_of(plane));
    move.ema_update(bytes_of(plane), 0.5, /*staging_bytes=*/100);
    EXPECT_EQ(allocations, before);
    EXPECT_EQ(plane, plane_of(model, shard, tensors)) << "0.5 x + 0.5 x";
  }
}

TEST(WeightMove, ARepeatedPullAllocatesNothingAtEitherEnd) {
  constexpr std::uint64_t rows = 20'000, row_bytes = 1024;
  std::vector<float> plane(3 * rows * row_bytes / sizeof(float)),
    got(plane.size() / 3 * 2), expected;
  TwoPlanes planes;
  std::iota(plane.begin(), plane.end(), 0.F);
  std::vector<plans::Transfer> plan; // a column of each of two planes
  for (std::uint32_t i = 0; i < 2; ++i) {
    planes.there.export_memory(1 + i, plane.data(),
                               plane.size() * sizeof(float));
    plan.push_back({{.source_offset = (1 + i) * row_bytes,
                     .target_offset = i * rows * row_bytes,
                     .bytes = row_bytes,
                     .runs = rows,
                     .source_stride = 3 * row_bytes,
                     .target_stride = row_bytes},
                    Rank{i},
                    Rank{2}});
    for (std::uint64_t row = 0; row < rows; ++row) {
      const auto* from
        = plane.data() + (3 * row + 1 + i) * row_bytes / sizeof(float);
      expected.insert(expected.end(), from, from + row_bytes / sizeof(float));
    }
  }
  WeightMove move(
    plan,
    [](Rank from) {
      return PlaneSource{
        .worker = WorkerId{1}, .id = 1 + from.value, .bytes = {}};
    },
    planes.here);
  const auto run = [&] {
    move.run(bytes_of(got));
    move.ema_update(bytes_of(got), 0.5, /*staging_bytes=*/3'000'000);
  };
  run();
  EXPECT_TRUE(got == expected);
  const auto before = allocations.load();
  for (int i = 0; i < 20; ++i)
    run();
  EXPECT_EQ(allocations - before, 0u) << "in 20 runs";
  EXPECT_TRUE(got == expected);
}

TEST(WeightMove, SendsOneRequestPerSource) {
  Random random(5);
  const auto model = troupe::testing::toy_model(3, 7, /*tied=*/false);
  const std::vector<Rank> four = {Rank{0}, Rank{1}, Rank{2}, Rank{3}},
                          two = {Rank{0}, Rank{1}};
  const auto source = plans::make_layout(model, {.tp = 4}, four, DType::f32);
  const auto target
    = plans::make_layout(model, {.pp = 2, .tp = 1}, two, DType::f32);
  const auto tensors = random_tensors(model, random);
  std::map<Rank, std::vector<float>> sources;
  TwoPlanes planes;
  for (const auto& shard : source.shards) {
    auto& plane = sources[shard.device] = plane_of(model, shard, tensors);
    planes.there.export_memory(1 + shard.device.value, plane.data(),
                               plane.size() * sizeof(float));
  }
  const auto plan = plans::move_plan(source, target, {.devices_per_node = 4});
  for (const auto& shard : target.shards) {
    WeightMove move(
      plans::transfers_to(plan, shard.device),
      [](Rank from) {
        return PlaneSource{
          .worker = WorkerId{1}, .id = 1 + from.value, .bytes = {}};
      },
      planes.here);
    std::vector<float> plane(shard.size_bytes / sizeof(float));
    const auto before = planes.here.counters().pulls;
    move.run(bytes_of(plane));
    EXPECT_EQ(planes.here.counters().pulls - before, source.shards.size());
    EXPECT_EQ(plane, plane_of(model, shard, tensors));
  }
}

/// A plane in the memory of a device.
struct FarPlane {
  explicit FarPlane(std::span<const float> numbers)
    : block(numbers.size_bytes(), device()) {
    device().write(numbers.data(), block.data(), numbers.size_bytes());
  }
  static const net::BlockMemory& device() {
    return troupe::testing::FarPages::memory();
  }
  std::span<std::byte> bytes() const {
    return {block.data(), block.size_bytes()};
  }
  std::vector<float> numbers() const {
    std::vector<float> found(block.size_bytes() / sizeof(float));
    device().read(block.data(), found.data(), block.size_bytes());
    return found;
  }

  net::PageBlock block;
};

// Sources by turns on a device, on the host, and in another process.
TEST(WeightMove, WritesTheMemoryOfADevice_I1) {
  Random random(11);
  const auto model = troupe::testing::toy_model(3, 7, /*tied=*/false);
  for (int round = 0; round < 20; ++round) {
    std::map<Rank, FarPlane> far;
    std::map<Rank, std::vector<float>> near;
    TwoPlanes planes;
    const auto source = random_layout(model, random);
    const auto target = random_layout(model, random);
    const auto tensors = random_tensors(model, random);
    for (const auto& shard : source.shards) {
      auto& plane = near[shard.device] = plane_of(model, shard, tensors);
      far.emplace(shard.device, plane);
      planes.there.export_memory(1 + shard.device.value, plane.data(),
                                 plane.size() * sizeof(float));
    }
    const auto find = [&](Rank from) {
      PlaneSource found{.worker = WorkerId{1}, .id = 1 + from.value};
      if (from.value % 3 == 0) {
        found.bytes = far.at(from).bytes();
        found.memory = &FarPlane::device();
      } else if (from.value % 3 == 1) {
        found.bytes = bytes_of(near.at(from));
      }
      return found;
    };
    const auto plan
      = plans::move_plan(source, target, {.devices_per_node = 18});
    for (const auto& shard : target.shards) {
      WeightMove move(plans::transfers_to(plan, shard.device), find,
                      planes.here);
      const FarPlane plane(
        std::vector<float>(shard.size_bytes / sizeof(float)));
      move.run(FarPlane::device(), plane.bytes(), /*staging_bytes=*/100);
      EXPECT_EQ(plane.numbers(), plane_of(model, shard, tensors));
      std::vector<float> host(shard.size_bytes / sizeof(float));
      move.run(bytes_of(host));
      EXPECT_EQ(host, plane_of(model, shard, tensors));
    }
  }
}

TEST(WeightMoveProperty, EmaUpdatesThroughAnyMoveEqualThoseOfTheWhole_I1) {
  Random random(7);
  TwoPlanes planes;
  const plans::Cluster cluster{.devices_per_node = 18, .workers_per_node = 2};
  std::uint64_t next_export = 1;
  for (int round = 0; round < 60; ++round) {
    const auto model = troupe::testing::toy_model(3, 7, round % 2 == 0);
    const auto own = random_tensors(model, random);
    const auto trained = random_tensors(model, random);
    auto blended = own;
    for (std::size_t i = 0; i < model.size(); ++i)
      ema_update(blended[i], trained[i], 0.95);
    const auto first_export = next_export;
    const auto source = random_layout(model, random);
    const auto target = random_layout(model, random);
    std::map<Rank, std::vector<float>> sources;
    for (const auto& shard : source.shards)
      sources[shard.device] = plane_of(model, shard, trained);
    const bool pulls = round % 3 == 0;
    const auto find = [&](Rank from) {
      PlaneSource found{.worker = WorkerId{1}, .id = next_export++};
      auto& plane = sources.at(from);
      if (!pulls)
        found.bytes = bytes_of(plane);
      planes.there.export_memory(found.id, plane.data(),
                                 plane.size() * sizeof(float));
      return found;
    };
    const auto plan = plans::move_plan(source, target, cluster);
    for (const auto& shard : target.shards) {
      net::MemoryCount staged;
      WeightMove move(plans::transfers_to(plan, shard.device), find,
                      planes.here);
      auto plane = plane_of(model, shard, own);
      std::thread([&] {
        staged.count_this_thread();
        move.ema_update(bytes_of(plane), 0.95, /*staging_bytes=*/100);
      }).join();
      EXPECT_LE(staged.peak_bytes(), 100u);
      EXPECT_EQ(plane, plane_of(model, shard, blended)) << "round " << round;
    }
    for (auto id = first_export; id < next_export; ++id)
      planes.there.withdraw(id);
  }
}

} // namespace
} // namespace troupe::models
