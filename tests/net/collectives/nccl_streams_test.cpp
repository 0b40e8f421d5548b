// Calls on streams over the stand-in for NCCL
// (tests/support/nccl/fake_nccl.cpp): they return before they end, and end
// their group when they fail, are late, or are not the same on all members. The
// order of what streams do is for the pretended GPUs
// (tests/gpu/orders_test.cpp).
#include "net/collectives/stream_collectives.hpp"

#include "tests/support/nccl/nccl_members.hpp"
#include <gmock/gmock.h>

#include <latch>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using troupe::testing::FakeNccl;
using troupe::testing::on_gpu;

class NcclStreamsTest : public troupe::testing::NcclMembers {
protected:
  /// A deadline that is waited for; members must have met before.
  static constexpr std::chrono::milliseconds short_deadline = 1s;

  static StreamCollectives& streams(Collectives& group,
                                    std::vector<float>& memory) {
    return *group.on_streams(on_gpu(memory).data());
  }
  /// Adds up on the streams; does not wait.
  static StreamTicket start_sum(Collectives& group, std::vector<float>& memory,
                                const char* name = "gradients",
                                StreamOrder order = StreamOrder::beside) {
    return streams(group, memory)
      .all_reduce_sum(memory.data(), memory.size(), DType::f32, name, order);
  }
  void expect_all(const std::vector<std::optional<Failure>>& failures,
                  const ::testing::Matcher<std::string>& text) {
    for (const auto& failure : failures) {
      ASSERT_TRUE(failure);
      EXPECT_THAT(to_string(*failure), text);
    }
  }
};

TEST_F(NcclStreamsTest, ACallReturnsBeforeTheOtherMembersCome) {
  std::latch has_returned(1);
  expect_success([&](Collectives& group) {
    std::vector<float> sum{1};
    StreamCollectives& calls = streams(group, sum);
    if (group.rank() > 0)
      has_returned.wait();
    const StreamTicket ticket = start_sum(group, sum);
    if (group.rank() == 0) {
      EXPECT_EQ(sum[0], 1);
      has_returned.count_down();
    }
    calls.join(ticket);
    wait_for_kernels(group);
    calls.check();
    EXPECT_EQ(sum[0], 3);
    EXPECT_EQ(FakeNccl::library().cuda.clear_error(), 0);
  });
}

TEST_F(NcclStreamsTest, AllOperationsAreThoseOfTheGroup) {
  expect_success([&](Collectives& group) {
    const auto rank = static_cast<float>(group.rank());
    std::vector<float> sum{rank, 10 * rank};
    std::vector<float> all(3, -1);
    std::vector<float> parts{1, 2, 3};
    std::vector<float> data{rank};
    on_gpu(all)[group.rank()] = rank;
    StreamCollectives& calls = streams(group, sum);
    const StreamOrder order = StreamOrder::in_line;
    start_sum(group, sum, "sum", order);
    calls.all_gather(all.data() + group.rank(), all.data(), 1, DType::f32,
                     "gather", order);
    calls.reduce_scatter_sum(on_gpu(parts).data(), parts.data() + group.rank(),
                             1, DType::f32, "scatter", order);
    calls.broadcast(on_gpu(data).data(), 1, DType::f32, 2, "broadcast", order);
    wait_for_kernels(group);
    EXPECT_THAT(sum, ElementsAre(3, 30));
    EXPECT_THAT(all, ElementsAre(0, 1, 2));
    EXPECT_EQ(parts[group.rank()], 3 * (rank + 1));
    EXPECT_EQ(data[0], 2);
  });
}

TEST_F(NcclStreamsTest, KernelsWaitForACallBesideThemOnceItIsJoined) {
  std::latch joined(1);
  expect_success([&](Collectives& group) {
    std::vector<float> sum{1};
    StreamCollectives& calls = streams(group, sum);
    if (group.rank() > 0)
      joined.wait();
    const StreamTicket ticket = start_sum(group, sum);
    if (group.rank() == 0) {
      const CudaStreams& cuda = FakeNccl::library().cuda;
      EXPECT_EQ(cuda.query_stream(streams_[0]), 0) << "kernels go on beside it";
      calls.join(ticket);
      EXPECT_NE(cuda.query_stream(streams_[0]), 0);
      cuda.clear_error();
      joined.count_down();
    }
    calls.join(ticket);
    wait_for_kernels(group);
  });
}

TEST_F(NcclStreamsTest, GroupsOfHostsAndMemoryOfTheHostHaveNone) {
  libraries_[1] = &FakeNccl::absent();
  expect_success([](Collectives& group) {
    std::vector<float> on_device{1};
    EXPECT_EQ(group.on_streams(on_gpu(on_device).data()), nullptr);
  });
  libraries_.clear();
  expect_success([](Collectives& group) {
    float of_the_host = 1;
    EXPECT_EQ(group.on_streams(&of_the_host), nullptr);
  });
}

TEST_F(NcclStreamsTest, ACallThatDoesNotEndFailsByNameAtTheDeadline_I7) {
  deadline_ = short_deadline;
  leave_together_ = false;
  std::latch ended(2);
  const auto failures = run([&](Collectives& group) {
    std::vector<float> sum{1};
    StreamCollectives& calls = streams(group, sum);
    if (group.rank() == 0)
      return ended.wait(); // without a call
    const auto at_end = [&](void*) { ended.count_down(); };
    const std::unique_ptr<void, decltype(at_end)> leaves(&sum, at_end);
    calls.join(start_sum(group, sum));
    wait_for_kernels(group);
    calls.check();
  });
  for (const std::uint32_t rank : {1, 2}) {
    ASSERT_TRUE(failures[rank]);
    EXPECT_EQ(failures[rank]->code, Errc::deadline);
    EXPECT_THAT(to_string(*failures[rank]),
                AllOf(HasSubstr("all_reduce_sum 'gradients' of 1 f32"),
                      HasSubstr("1000 ms")));
  }
}

TEST_F(NcclStreamsTest, AnAbortEndsCallsOnTheirWayWithItsCause_I7) {
  leave_together_ = false;
  std::latch under_way(2);
  std::latch ended(2);
  const auto failures = run([&](Collectives& group) {
    std::vector<float> sum{1};
    StreamCollectives& calls = streams(group, sum);
    if (group.rank() == 0) {
      under_way.wait();
      group.abort({Errc::peer_lost, "worker 7", "is gone", ""});
      return ended.wait();
    }
    const StreamTicket ticket = start_sum(group, sum);
    under_way.count_down();
    const auto at_end = [&](void*) { ended.count_down(); };
    const std::unique_ptr<void, decltype(at_end)> leaves(&sum, at_end);
    calls.join(ticket);
    wait_for_kernels(group);
    calls.check();
  });
  for (const std::uint32_t rank : {1, 2}) {
    ASSERT_TRUE(failures[rank]);
    EXPECT_EQ(failures[rank]->who, "worker 7");
  }
}

TEST_F(NcclStreamsTest, AnAbortOfTheGroupOfHostsEndsThemToo_I7) {
  leave_together_ = false;
  std::latch under_way(2);
  std::latch ended(2);
  const auto failures = run([&](Collectives& group) {
    std::vector<float> sum{1};
    StreamCollectives& calls = streams(group, sum);
    if (group.rank() == 0) {
      under_way.wait();
      registry_.abort_all({Errc::peer_lost, "worker 7", "is gone", ""});
      return ended.wait();
    }
    start_sum(group, sum, "gradients", StreamOrder::in_line);
    under_way.count_down();
    wait_for_kernels(group); // which the watchdog ends
    ended.count_down();
    calls.check();
  });
  for (const std::uint32_t rank : {1, 2}) {
    ASSERT_TRUE(failures[rank]);
    EXPECT_EQ(failures[rank]->who, "worker 7");
  }
}

TEST_F(NcclStreamsTest, OtherNamesFailWhenMembersMeet_I7) {
  leave_together_ = false;
  expect_all(run([&](Collectives& group) {
               std::vector<float> sum{1};
               for (int i = 0; i < 100; ++i)
                 start_sum(group, sum, "layer", StreamOrder::in_line);
               start_sum(group, sum, group.rank() == 1 ? "tail" : "head",
                         StreamOrder::in_line);
               wait_for_kernels(group);
               group.barrier("step");
             }),
             AllOf(HasSubstr("call 101 on streams"),
                   HasSubstr("rank 0 called all_reduce_sum 'head' of 1 f32"),
                   HasSubstr("rank 1 all_reduce_sum 'tail' of 1 f32")));
}

TEST_F(NcclStreamsTest, EqualCallsPassWhenMembersMeet) {
  expect_success([&](Collectives& group) {
    std::vector<float> sum{1};
    start_sum(group, sum, "head", StreamOrder::in_line);
    wait_for_kernels(group);
    streams(group, sum).compare();
    double of_the_host = 1;
    start_sum(group, sum, "tail", StreamOrder::in_line);
    group.all_reduce_sum(&of_the_host, 1, DType::f64, "norm");
    EXPECT_EQ(of_the_host, 3);
    wait_for_kernels(group);
  });
}

TEST_F(NcclStreamsTest, ARefusedCallEndsTheOthersWithItsCause_I7) {
  leave_together_ = false;
  std::latch ended(3);
  expect_all(run([&](Collectives& group) {
               std::vector<float> sum{1};
               StreamCollectives& calls = streams(group, sum);
               group.barrier("joined");
               const auto at_end = [&](void*) { ended.arrive_and_wait(); };
               const std::unique_ptr<void, decltype(at_end)> leaves(&sum,
                                                                    at_end);
               if (group.rank() > 0) {
                 start_sum(group, sum, "gradients", StreamOrder::in_line);
                 wait_for_kernels(group);
                 return calls.check();
               }
               // the stand-in adds no bf16
               calls.all_reduce_sum(sum.data(), 1, DType::bf16, "rounded",
                                    StreamOrder::beside);
             }),
             AllOf(HasSubstr("rank 0"), HasSubstr("rounded"),
                   HasSubstr("invalid argument")));
}

TEST_F(NcclStreamsTest, CapturedCallsHaveNoEventsAndTheirGraphIsWatched_I7) {
  deadline_ = short_deadline;
  leave_together_ = false;
  std::latch ended(3);
  const auto failures = run([&](Collectives& group) {
    std::vector<float> sum{1};
    StreamCollectives& calls = streams(group, sum);
    FakeNccl::instance().capture(CaptureState::active);
    const StreamTicket captured
      = start_sum(group, sum, "layer", StreamOrder::in_line);
    EXPECT_EQ(captured.number, 0U);
    EXPECT_THROW(start_sum(group, sum, "layer", StreamOrder::beside),
                 InvariantError);
    FakeNccl::instance().capture(CaptureState::none);
    wait_for_kernels(group);
    EXPECT_EQ(sum[0], 1) << "a capture launches nothing";
    group.barrier("captured");
    calls.end_capture(/*is_kept=*/true);
    const auto at_end = [&](void*) { ended.arrive_and_wait(); };
    const std::unique_ptr<void, decltype(at_end)> leaves(&sum, at_end);
    calls.launch("decode step", [&] { // of which one does not come
      if (group.rank() > 0)
        FakeNccl::instance().replay();
    });
    wait_for_kernels(group);
    if (group.rank() > 0)
      calls.check();
  });
  for (const std::uint32_t rank : {1, 2}) {
    ASSERT_TRUE(failures[rank]);
    EXPECT_THAT(to_string(*failures[rank]), HasSubstr("graph 'decode step'"));
  }
}

TEST_F(NcclStreamsTest, CallsOfACaptureThatOneMemberIsRefusedCountAsNotMade) {
  expect_success([&](Collectives& group) {
    std::vector<float> sum{1};
    StreamCollectives& calls = streams(group, sum);
    FakeNccl::instance().capture(CaptureState::active);
    start_sum(group, sum, "layer 0", StreamOrder::in_line);
    if (group.rank() == 0) // who makes no call of NCCL from here on
      FakeNccl::instance().capture(CaptureState::invalidated);
    start_sum(group, sum, "layer 1", StreamOrder::in_line);
    FakeNccl::instance().capture(CaptureState::none);
    group.barrier("captured");
    calls.end_capture(/*is_kept=*/false);
    start_sum(group, sum, "layer 0", StreamOrder::in_line);
    wait_for_kernels(group);
    group.barrier("step");
    EXPECT_EQ(sum[0], 3);
  });
}

TEST_F(NcclStreamsTest, OtherNamesInACaptureFailWhenMembersMeetAgain_I7) {
  leave_together_ = false;
  expect_all(run([&](Collectives& group) {
               std::vector<float> sum{1};
               StreamCollectives& calls = streams(group, sum);
               FakeNccl::instance().capture(CaptureState::active);
               start_sum(group, sum, group.rank() == 1 ? "tail" : "head",
                         StreamOrder::in_line);
               FakeNccl::instance().capture(CaptureState::none);
               group.barrier("captured");
               calls.end_capture(/*is_kept=*/true);
               group.barrier("step");
             }),
             AllOf(HasSubstr("call 1 on streams"),
                   HasSubstr("rank 0 called all_reduce_sum 'head' of 1 f32"),
                   HasSubstr("rank 1 all_reduce_sum 'tail' of 1 f32")));
}

} // namespace
} // namespace troupe::net
