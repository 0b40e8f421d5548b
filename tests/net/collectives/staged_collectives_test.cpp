// Collectives of two threads on memory that faults when the host touches it.
#include "net/base/host_copy.hpp"
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/staged_collectives.hpp"

#include <gtest/gtest.h>

#include "tests/support/net/far_pages.hpp"
#include "tests/support/net/group_threads.hpp"

#include <string>
#include <vector>

namespace troupe::net {
namespace {

using troupe::testing::FarPages;

/// Floats of the pretended device.
class DeviceFloats {
public:
  explicit DeviceFloats(const std::vector<float>& values)
    : size_bytes_(values.size() * sizeof(float)),
      data_(static_cast<float*>(FarPages::memory().take(size_bytes_))) {
    FarPages::memory().write(values.data(), data_, size_bytes_);
  }
  float* data() const {
    return data_;
  }
  std::vector<float> values() const {
    const HostRead copy(&FarPages::memory(), data_, size_bytes_);
    return {copy.floats(), copy.floats() + size_bytes_ / sizeof(float)};
  }

private:
  std::size_t size_bytes_;
  float* data_;
};

class StagedCollectives : public ::testing::Test {
protected:
  using Numbers = std::vector<std::vector<float>>;

  /// Runs both members on `of_rank[rank]`; returns what they hold afterwards.
  Numbers run(const Numbers& of_rank,
              const std::function<void(Collectives&, float*)>& body) {
    std::vector<DeviceFloats> blocks;
    for (const auto& values : of_rank)
      blocks.emplace_back(values);
    const auto failures = troupe::testing::run_group(
      2,
      [this](std::uint32_t rank) {
        GroupSpec spec;
        spec.name = "staged";
        spec.index = rank;
        spec.members.resize(2);
        return make_staged_collectives(make_host_collectives(spec, registry_),
                                       FarPages::memory());
      },
      [&](Collectives& group) { body(group, blocks[group.rank()].data()); },
      true);
    for (const auto& failure : failures)
      EXPECT_FALSE(failure.has_value());
    return {blocks[0].values(), blocks[1].values()};
  }

  GroupRegistry registry_;
};

TEST_F(StagedCollectives, ReducesMemoryOfTheDevice) {
  EXPECT_EQ(run({{1, 2}, {10, 20}},
                [](Collectives& group, float* data) {
                  group.all_reduce_sum(data, 2, DType::f32, "sum");
                }),
            (Numbers{{11, 22}, {11, 22}}));
}

TEST_F(StagedCollectives, GathersIntoMemoryThatHasTheOwnPart) {
  EXPECT_EQ(run({{1, 0}, {0, 2}},
                [](Collectives& group, float* data) {
                  group.all_gather(data + group.rank(), data, 1, DType::f32,
                                   "gather");
                }),
            (Numbers{{1, 2}, {1, 2}}));
}

TEST_F(StagedCollectives, ScattersIntoItsPartAndLeavesTheRest) {
  EXPECT_EQ(run({{1, 2}, {10, 20}},
                [](Collectives& group, float* data) {
                  group.reduce_scatter_sum(data, data + group.rank(), 1,
                                           DType::f32, "scatter");
                }),
            (Numbers{{11, 2}, {10, 22}}));
}

TEST_F(StagedCollectives, BroadcastsMemoryOfTheDevice) {
  EXPECT_EQ(run({{1, 2}, {10, 20}},
                [](Collectives& group, float* data) {
                  group.broadcast(data, 2, DType::f32, 1, "broadcast");
                }),
            (Numbers{{10, 20}, {10, 20}}));
}

TEST_F(StagedCollectives, MemoryOfTheHostGoesThroughUnstaged) {
  run({{0}, {0}}, [](Collectives& group, float* /*data*/) {
    float of_host = 1;
    group.all_reduce_sum(&of_host, 1, DType::f32, "sum");
    EXPECT_EQ(of_host, 2);
  });
}

} // namespace
} // namespace troupe::net
