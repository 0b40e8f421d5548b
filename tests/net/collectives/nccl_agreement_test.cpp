// Members of a group know before its first call whether it uses NCCL: from what
// each of them has.
#include "net/collectives/nccl_agreement.hpp"

#include "tests/support/nccl/nccl_members.hpp"
#include <gmock/gmock.h>

#include <latch>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using troupe::testing::FakeNccl;
using troupe::testing::gpu_of;
using troupe::testing::nccl_of;
using troupe::testing::on_gpu;

class NcclAgreementTest : public troupe::testing::NcclMembers {};

TEST(NcclAgreement, AGpuEachAndNcclEverywhereAreEnough) {
  EXPECT_THAT(why_no_nccl(nccl_of(8)), IsEmpty());
}

TEST(NcclAgreement, OneMemberWithoutNcclIsEnoughForTheHost) {
  for (std::size_t without = 0; without < 3; ++without) {
    auto offers = nccl_of(3);
    offers[without].has_nccl = false;
    EXPECT_THAT(why_no_nccl(offers), HasSubstr("has no NCCL"));
  }
}

TEST(NcclAgreement, TwoMembersOfOneGpuAreEnoughForTheHost) {
  auto offers = nccl_of(4);
  offers[3].gpu = offers[0].gpu;
  EXPECT_THAT(why_no_nccl(offers), HasSubstr("share a GPU"));
}

TEST(NcclAgreement, AProcessOffersEachOfItsGpus) {
  GpuReport gpus;
  EXPECT_THAT(nccl_offers(gpus, FakeNccl::library()), IsEmpty());
  gpus.ids = {gpu_of(5), gpu_of(6)};
  const auto offers = nccl_offers(gpus, FakeNccl::library());
  ASSERT_EQ(offers.size(), 2U);
  EXPECT_EQ(offers[1].gpu, gpu_of(6));
  EXPECT_TRUE(offers[1].has_nccl);
  EXPECT_FALSE(nccl_offers(gpus, FakeNccl::absent())[1].has_nccl);
}

TEST_F(NcclAgreementTest, MembersKnowThatTheyUseTheHostWithoutAMeeting) {
  leave_together_ = false;
  deadline_ = 100ms; // of a meeting to which the others do not come
  libraries_[1] = &FakeNccl::absent();
  expect_success([](Collectives& group) {
    std::vector<float> sum{1};
    if (group.rank() == 0) {
      EXPECT_EQ(group.on_streams(on_gpu(sum).data()), nullptr);
    }
  });
}

TEST_F(NcclAgreementTest, AMemberThatJoinsLateTakesPartInTheFirstCall) {
  std::latch others_begin(2);
  const auto before = FakeNccl::instance().groups();
  const auto make = [&](std::uint32_t rank) {
    if (rank == 2)
      others_begin.wait();
    return member(rank);
  };
  const auto body = [&](Collectives& group) {
    if (group.rank() < 2)
      others_begin.count_down();
    expect_sum(group);
  };
  make_streams();
  for (const auto& failure : troupe::testing::run_group(
         members_, make, body, /*leave_together=*/true))
    EXPECT_FALSE(failure) << to_string(*failure);
  EXPECT_EQ(FakeNccl::instance().groups(), before + 1);
}

TEST_F(NcclAgreementTest, AMemberThatNeverJoinsIsNamedAtTheDeadline_I7) {
  deadline_ = 300ms;
  leave_together_ = false;
  make_streams();
  std::optional<Failure> why;
  try {
    expect_sum(*member(0));
  } catch (const FailureError& error) {
    why = error.failure();
  }
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code, Errc::deadline);
  EXPECT_THAT(to_string(*why), HasSubstr("sum"));
}

} // namespace
} // namespace troupe::net
