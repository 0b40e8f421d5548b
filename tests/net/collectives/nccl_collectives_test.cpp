// Collectives of GPUs over a library that does NCCL's work on the host
// (tests/support/nccl/fake_nccl.cpp): which operations use NCCL, which stay
// with the host group, and how waits end. No GPU is needed or used.
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/nccl_collectives.hpp"

#include "tests/support/nccl/fake_nccl.hpp"
#include "tests/support/net/group_threads.hpp"
#include <gmock/gmock.h>

#include <atomic>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using troupe::testing::FakeNccl;

/// Numbers that count as GPU memory.
template <class T>
std::vector<T>& on_gpu(std::vector<T>& values) {
  FakeNccl::instance().count_as_gpu(
    reinterpret_cast<const std::byte*>(values.data()),
    values.size() * sizeof(T));
  return values;
}

class NcclCollectivesTest : public ::testing::Test {
protected:
  GroupSpec spec(std::uint32_t rank) const {
    GroupSpec made;
    made.name = "nccl";
    made.index = rank;
    made.members.resize(members_);
    made.progress_deadline = deadline_;
    return made;
  }

  std::vector<std::optional<Failure>>
  run(const std::function<void(Collectives&)>& body) {
    return troupe::testing::run_group(
      members_,
      [this](std::uint32_t rank) {
        return make_nccl_collectives(
          {.host = make_host_collectives(spec(rank), registry_),
           .device = 0,
           .progress_deadline = deadline_,
           .gpu = {gpu_of(rank), 0, 0, 0}},
          rank == without_nccl_ ? FakeNccl::absent() : FakeNccl::library());
      },
      body, leave_together_);
  }
  void expect_success(const std::function<void(Collectives&)>& body) {
    for (const auto& failure : run(body))
      EXPECT_FALSE(failure) << to_string(*failure);
  }

  std::int32_t gpu_of(std::uint32_t rank) const {
    return shares_a_gpu_ ? 7 : static_cast<std::int32_t>(rank);
  }
  /// Sums memory of a GPU, and expects the sum and no error of CUDA.
  static void expect_sum(Collectives& group) {
    std::vector<float> sum{1};
    group.all_reduce_sum(on_gpu(sum).data(), 1, DType::f32, "sum");
    EXPECT_EQ(sum[0], static_cast<float>(group.size()));
    EXPECT_EQ(FakeNccl::library().cuda.clear_error(), 0)
      << "the next kernel launch fails with it";
  }

  std::uint32_t members_ = 3;
  std::uint32_t without_nccl_ = 99; ///< rank of a member that has none
  bool shares_a_gpu_ = false;
  std::chrono::milliseconds deadline_ = 20s;
  bool leave_together_ = true;
  GroupRegistry registry_;
};

TEST(NcclLibrary, NamesTheMissingLibraryOrSymbol) {
  EXPECT_THAT(NcclLibrary::open("libnone.so", TROUPE_FAKE_NCCL).why_not,
              HasSubstr("libnone.so"));
  EXPECT_THAT(NcclLibrary::open("libc.so.6", TROUPE_FAKE_NCCL).why_not,
              HasSubstr("ncclGetVersion"));
  EXPECT_EQ(FakeNccl::library().why_not, "");
  EXPECT_EQ(FakeNccl::library().version(), "2.28.9");
}

TEST_F(NcclCollectivesTest, ImplementsAllCollectivesOnGpuMemory) {
  expect_success([](Collectives& group) {
    const auto rank = static_cast<float>(group.rank());
    std::vector<float> sum{rank, 10 * rank};
    group.all_reduce_sum(on_gpu(sum).data(), 2, DType::f32, "sum");
    EXPECT_THAT(sum, ElementsAre(3, 30));
    std::vector<float> all(3, -1);
    on_gpu(all)[group.rank()] = rank;
    group.all_gather(all.data() + group.rank(), all.data(), 1, DType::f32,
                     "gather");
    EXPECT_THAT(all, ElementsAre(0, 1, 2));
    std::vector<std::int64_t> parts{1, 2, 3};
    group.reduce_scatter_sum(on_gpu(parts).data(), parts.data() + group.rank(),
                             1, DType::i64, "scatter");
    EXPECT_EQ(parts[group.rank()], 3 * (group.rank() + 1));
    std::vector<double> data{group.rank() * 1.5};
    group.broadcast(on_gpu(data).data(), 1, DType::f64, 2, "broadcast");
    EXPECT_THAT(data, ElementsAre(3.0));
  });
}

TEST_F(NcclCollectivesTest, LeavesHostMemoryToTheHostGroup) {
  expect_success([](Collectives& group) {
    double sum = 0.5;
    group.all_reduce_sum(&sum, 1, DType::f64, "norm");
    EXPECT_EQ(sum, 1.5);
  });
}

TEST_F(NcclCollectivesTest, WaitsLeaveNoErrorForTheNextKernelLaunch) {
  expect_success([](Collectives& group) {
    // all but the last to arrive find the stream not ready
    for (int i = 0; i < 20; ++i)
      expect_sum(group);
  });
}

TEST_F(NcclCollectivesTest, AllUseTheHostIfOneHasNoNccl) {
  without_nccl_ = 1;
  expect_success(expect_sum);
}

TEST_F(NcclCollectivesTest, AllUseTheHostIfTwoShareAGpu) {
  shares_a_gpu_ = true;
  const auto before = FakeNccl::instance().groups();
  expect_success(expect_sum);
  EXPECT_EQ(FakeNccl::instance().groups(), before);
}

TEST_F(NcclCollectivesTest, ASilentMemberIsNamedAtTheDeadline_I7) {
  deadline_ = 300ms;
  leave_together_ = false;
  std::atomic<int> ended = 0;
  const auto failures = run([&](Collectives& group) {
    std::vector<float> sum{1};
    group.all_reduce_sum(on_gpu(sum).data(), 1, DType::f32, "first");
    while (group.rank() == 0 && ended.load() < 2)
      std::this_thread::yield();
    if (group.rank() == 0)
      return;
    const auto count = [](std::atomic<int>* to) { ++*to; };
    const std::unique_ptr<std::atomic<int>, decltype(count)> at_end(&ended,
                                                                    count);
    group.all_reduce_sum(sum.data(), 1, DType::f32, "gradients");
  });
  ASSERT_TRUE(failures[1]);
  EXPECT_THAT(to_string(*failures[1]), HasSubstr("gradients"));
  EXPECT_THAT(to_string(*failures[1]), HasSubstr("rank 0"));
}

TEST_F(NcclCollectivesTest, AbortWakesEveryWaiterWithTheRootCause_I7) {
  leave_together_ = false;
  std::atomic<Collectives*> waiting = nullptr;
  const auto failures = run([&](Collectives& group) {
    std::vector<float> sum{1};
    if (group.rank() > 0) {
      waiting = &group;
      group.all_reduce_sum(on_gpu(sum).data(), 1, DType::f32, "gradients");
      return;
    }
    while (waiting == nullptr)
      std::this_thread::yield();
    group.abort({Errc::peer_lost, "worker 7", "is gone", ""});
    throw FailureError{{Errc::aborted, "me", "too", ""}};
  });
  EXPECT_EQ(failures[1]->who, "worker 7");
  EXPECT_EQ(failures[2]->who, "worker 7");
}

} // namespace
} // namespace troupe::net
