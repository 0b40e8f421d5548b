// How a group over NCCL ends when a member fails, does not come, or is told to
// stop: over the stand-in (tests/support/nccl/fake_nccl.cpp), in which single
// members have functions of their own.
#include "tests/support/nccl/nccl_members.hpp"
#include <gmock/gmock.h>

#include <atomic>
#include <future>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using troupe::testing::FakeNccl;
using troupe::testing::on_gpu;

constexpr int in_progress = 7;
constexpr int out_of_memory = 2; // of CUDA

/// Counts members when they leave a scope.
class Leaves {
public:
  explicit Leaves(std::atomic<std::uint32_t>& count) : count_(count) {}
  ~Leaves() {
    ++count_;
    count_.notify_all();
  }
  Leaves(const Leaves&) = delete;
  Leaves& operator=(const Leaves&) = delete;

private:
  std::atomic<std::uint32_t>& count_;
};

void wait_for(std::atomic<std::uint32_t>& count, std::uint32_t wanted) {
  for (auto seen = count.load(); seen < wanted; seen = count.load())
    count.wait(seen);
}

/// A call of NCCL in which a member stays until the gate is opened.
struct Gate {
  static inline std::atomic<std::uint32_t> reached = 0;
  static inline std::atomic<std::uint32_t> opened = 0;

  static const NcclLibrary& library() {
    reached = opened = 0;
    static const NcclLibrary made = [] {
      auto library = FakeNccl::library();
      library.all_reduce = [](const void*, void*, std::size_t, int, int,
                              NcclCommunicator, CudaStream) {
        Leaves{reached};
        wait_for(opened, 1);
        return 0;
      };
      return library;
    }();
    return made;
  }
};

class NcclGroupTest : public troupe::testing::NcclMembers {
protected:
  NcclGroupTest() {
    leave_together_ = false;
  }

  /// Runs `fails` as rank 1, which keeps its group until the others' sums have
  /// ended; these begin with one that all make.
  std::vector<std::optional<Failure>>
  run_until_rank_1_fails(const std::function<void(Collectives&)>& fails) {
    std::atomic<std::uint32_t> ended = 0;
    return run([&](Collectives& group) {
      if (group.rank() == 1) {
        EXPECT_THROW(fails(group), FailureError);
        return wait_for(ended, members_ - 1);
      }
      const Leaves at_end(ended);
      expect_sum(group);
      expect_sum(group);
    });
  }

  void expect_failure_of_rank_1(const std::function<void(Collectives&)>& fails,
                                const char* cause) {
    const auto failures = run_until_rank_1_fails(fails);
    for (const std::uint32_t rank : {0, 2}) {
      ASSERT_TRUE(failures[rank]);
      EXPECT_THAT(to_string(*failures[rank]),
                  AllOf(HasSubstr("rank 1"), HasSubstr(cause)));
    }
  }
};

TEST_F(NcclGroupTest, AMemberWhoseCallIsRefusedEndsTheOthersWithItsCause_I7) {
  const auto refused = [](Collectives& group) {
    expect_sum(group);
    std::vector<std::uint16_t> value{1}; // the stand-in adds no bf16
    group.all_reduce_sum(on_gpu(value).data(), 1, DType::bf16, "sum");
  };
  expect_failure_of_rank_1(refused, "invalid argument");
}

TEST_F(NcclGroupTest, AMemberThatCannotJoinEndsTheOthersWithItsCause_I7) {
  static const NcclLibrary without_streams = [] {
    auto library = FakeNccl::library();
    library.cuda.make_stream
      = [](CudaStream*, unsigned) { return out_of_memory; };
    return library;
  }();
  libraries_[1] = &without_streams;
  expect_failure_of_rank_1(expect_sum, "making a stream");
}

TEST_F(NcclGroupTest, JoiningEndsAtTheDeadlineIfAMemberDoesNotJoin_I7) {
  static const NcclLibrary never_joins = [] {
    auto library = FakeNccl::library();
    library.groups.init_configured = [](NcclCommunicator*, int, NcclId, int,
                                        NcclConfig*) { return in_progress; };
    library.groups.async_error = [](NcclCommunicator, int* error) {
      *error = in_progress;
      return 0;
    };
    return library;
  }();
  libraries_[1] = &never_joins;
  deadline_ = 1s; // of the meeting before too
  for (const auto& failure : run(expect_sum)) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, Errc::deadline);
    EXPECT_THAT(to_string(*failure), HasSubstr("joining 3 ranks"));
  }
}

TEST_F(NcclGroupTest, AnAbortDoesNotWaitForACallThatBlocks_I7) {
  libraries_[0] = &Gate::library();
  std::atomic<std::uint32_t> ended = 0;
  bool was_in_time = false;
  const auto failures = run([&](Collectives& group) {
    if (group.rank() > 0) {
      const Leaves at_end(ended);
      return expect_sum(group);
    }
    auto aborting = std::async(std::launch::async, [&] {
      wait_for(Gate::reached, 1);
      group.abort({Errc::peer_lost, "worker 7", "is gone", ""});
    });
    auto opening = std::async(std::launch::async, [&] {
      was_in_time = aborting.wait_for(5s) == std::future_status::ready;
      if (was_in_time)
        wait_for(ended, 2); // who waits for the call that blocks
      Leaves{Gate::opened};
    });
    expect_sum(group);
  });
  EXPECT_TRUE(was_in_time);
  for (const auto& failure : failures) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->who, "worker 7");
  }
}

TEST_F(NcclGroupTest, AnAbortOfAllGroupsEndsWaitsForStreams_I7) {
  libraries_[0] = &Gate::library();
  std::atomic<std::uint32_t> ended = 0;
  const auto failures = run([&](Collectives& group) {
    if (group.rank() > 0) {
      const Leaves at_end(ended);
      return expect_sum(group);
    }
    auto aborting = std::async(std::launch::async, [&] {
      wait_for(Gate::reached, 1);
      registry_.abort_all({Errc::peer_lost, "worker 7", "is gone", ""});
      wait_for(ended, 2);
      Leaves{Gate::opened};
    });
    std::vector<float> unsummed{1};
    group.all_reduce_sum(on_gpu(unsummed).data(), 1, DType::f32, "sum");
  });
  for (const std::uint32_t rank : {1, 2}) {
    ASSERT_TRUE(failures[rank]);
    EXPECT_EQ(failures[rank]->who, "worker 7");
  }
}

TEST_F(NcclGroupTest, MembersWhoseMemoryDiffersAreNamedAtOnce_I7) {
  for (const bool is_first : {true, false}) {
    const auto failures = run_until_rank_1_fails([&](Collectives& group) {
      if (!is_first)
        expect_sum(group);
      float of_the_host = 1;
      group.all_reduce_sum(&of_the_host, 1, DType::f32, "sum");
    });
    for (const std::uint32_t rank : {0, 2}) {
      ASSERT_TRUE(failures[rank]);
      EXPECT_EQ(failures[rank]->code, Errc::bug);
      EXPECT_THAT(to_string(*failures[rank]),
                  AllOf(HasSubstr("barrier 'sum'"), HasSubstr("rank 1"),
                        HasSubstr("all_reduce_sum 'sum' of 1 f32")));
    }
  }
}

} // namespace
} // namespace troupe::net
