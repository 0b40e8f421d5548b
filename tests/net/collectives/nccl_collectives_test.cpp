// Collectives of GPUs over a library that does NCCL's work on the host
// (tests/support/nccl/fake_nccl.cpp): which operations use NCCL, which stay
// with the host group, and how waits end. No GPU is needed or used.
#include "net/collectives/nccl_collectives.hpp"

#include "tests/support/nccl/nccl_members.hpp"
#include <gmock/gmock.h>

#include <atomic>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using troupe::testing::FakeNccl;
using troupe::testing::on_gpu;

class NcclCollectivesTest : public troupe::testing::NcclMembers {};

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
  libraries_[1] = &FakeNccl::absent();
  expect_success(expect_sum);
}

TEST_F(NcclCollectivesTest, AllUseTheHostIfTwoShareAGpu) {
  shares_a_gpu_ = true;
  const auto before = FakeNccl::instance().groups();
  expect_success(expect_sum);
  EXPECT_EQ(FakeNccl::instance().groups(), before);
}

TEST_F(NcclCollectivesTest, ASilentMemberIsNamedAtTheDeadline_I7) {
  deadline_ = 1s; // of the first sum too
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
