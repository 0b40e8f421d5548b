// Exchanges over NCCL's stand-in: when they use it, and how they end when a
// member fails in one.
#include "tests/support/nccl/nccl_members.hpp"
#include <gmock/gmock.h>

#include <array>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using troupe::testing::FakeNccl;
using troupe::testing::on_gpu;

class NcclExchangeTest : public troupe::testing::NcclMembers {
protected:
  using Numbers = std::vector<std::int64_t>;

  /// Sends a number to the next rank and receives that of the one before.
  static void pass_around(Collectives& group, const Numbers& from,
                          Numbers& to) {
    const SentPiece sent{(group.rank() + 1) % group.size(),
                         reinterpret_cast<const std::byte*>(from.data()),
                         sizeof from[0]};
    const ReceivedPiece received{
      (group.rank() + group.size() - 1) % group.size(),
      reinterpret_cast<std::byte*>(to.data()), sizeof to[0]};
    group.exchange({{&sent, 1}, {&received, 1}}, "weights");
  }
  static void expect_passed_around(Collectives& group) {
    Numbers from{group.rank() + 1};
    Numbers to{0};
    pass_around(group, on_gpu(from), on_gpu(to));
    EXPECT_EQ(to[0], (group.rank() + group.size() - 1) % group.size() + 1);
  }
};

TEST_F(NcclExchangeTest, AllGoThroughTheHostIfOnePieceIsInItsMemory) {
  const auto before = FakeNccl::instance().groups();
  std::array<Numbers, 3> from{Numbers{1}, Numbers{2}, Numbers{3}};
  std::array<Numbers, 3> to{Numbers{0}, Numbers{0}, Numbers{0}};
  for (std::size_t rank = 0; rank < 3; ++rank) {
    on_gpu(from[rank]);
    if (rank != 1)
      on_gpu(to[rank]);
  }
  expect_success([&](Collectives& group) {
    pass_around(group, from[group.rank()], to[group.rank()]);
  });
  EXPECT_EQ(to, (std::array{Numbers{3}, Numbers{1}, Numbers{2}}));
  EXPECT_EQ(FakeNccl::instance().groups(), before);
}

TEST_F(NcclExchangeTest, AllGoThroughTheHostIfOneHasNoNccl) {
  const auto before = FakeNccl::instance().groups();
  libraries_[1] = &FakeNccl::absent();
  expect_success(expect_passed_around);
  EXPECT_EQ(FakeNccl::instance().groups(), before);
}

TEST_F(NcclExchangeTest, SumsAndExchangesShareAGroup) {
  const auto before = FakeNccl::instance().groups();
  expect_success([](Collectives& group) {
    expect_sum(group);
    expect_passed_around(group);
    expect_sum(group);
    expect_passed_around(group);
  });
  EXPECT_EQ(FakeNccl::instance().groups(), before + 1);
}

TEST_F(NcclExchangeTest, AMemberWhoseCallIsRefusedEndsTheOthersWithItsCause) {
  static const NcclLibrary refusing = [] {
    auto library = FakeNccl::library();
    library.receive = [](void*, std::size_t, int, int, NcclCommunicator,
                         CudaStream) { return 4; };
    return library;
  }();
  libraries_[1] = &refusing;
  for (const auto& failure : run(expect_passed_around)) {
    ASSERT_TRUE(failure);
    EXPECT_THAT(to_string(*failure),
                AllOf(HasSubstr("rank 1"), HasSubstr("weights"),
                      HasSubstr("invalid argument")));
  }
}

TEST_F(NcclExchangeTest, AMemberThatTakesNoPartIsNoticedAtTheDeadline_I7) {
  static const NcclLibrary silent = [] {
    auto library = FakeNccl::library();
    library.send = [](const void*, std::size_t, int, int, NcclCommunicator,
                      CudaStream) { return 0; };
    library.receive = [](void*, std::size_t, int, int, NcclCommunicator,
                         CudaStream) { return 0; };
    library.cuda.query_stream = [](CudaStream) { return 600; };
    return library;
  }();
  libraries_[1] = &silent;
  deadline_ = 1s; // of the meeting before too
  for (const auto& failure : run(expect_passed_around)) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, Errc::deadline);
    EXPECT_THAT(to_string(*failure), HasSubstr("weights"));
  }
}

} // namespace
} // namespace troupe::net
