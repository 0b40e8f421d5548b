// All-to-alls of threads: every run arrives at its rank, in rank order, also
// where runs are empty, and an abort ends a member that waits.
#include "net/collectives/all_to_all.hpp"
#include "net/collectives/host_collectives.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <numeric>
#include <thread>

namespace troupe::net {
namespace {

class AllToAllTest : public ::testing::Test {
protected:
  std::shared_ptr<AllToAll> join(std::uint32_t rank, std::uint32_t size) {
    std::vector<std::shared_ptr<Channel>> channels(size);
    for (std::uint32_t i = 0; i < size; ++i) {
      if (i == rank)
        continue;
      GroupSpec spec;
      spec.name = fmt::format("{}-{}", std::min(i, rank), std::max(i, rank));
      spec.index = rank < i ? 0 : 1;
      spec.members.resize(2);
      spec.progress_deadline = std::chrono::milliseconds(5000);
      channels[i] = make_host_channel(spec, registry_);
    }
    return std::make_shared<AllToAll>(std::move(channels), rank);
  }

  GroupRegistry registry_;
};

// Rank i sends (i + 2 j) % 4 numbers 100 i + j to rank j.
std::size_t run_of(std::uint32_t from, std::uint32_t to) {
  return (from + 2 * to) % 4;
}

void exchange_and_check(AllToAll& group) {
  std::vector<std::int32_t> out;
  std::vector<std::int32_t> want;
  std::vector<std::size_t> sizes_out;
  std::vector<std::size_t> sizes_in;
  const std::uint32_t rank = group.rank();
  for (std::uint32_t peer = 0; peer < group.size(); ++peer) {
    const std::size_t sent = run_of(rank, peer);
    const std::size_t received = run_of(peer, rank);
    out.insert(out.end(), sent, static_cast<std::int32_t>(100 * rank + peer));
    want.insert(want.end(), received,
                static_cast<std::int32_t>(100 * peer + rank));
    sizes_out.push_back(sent * sizeof(std::int32_t));
    sizes_in.push_back(received * sizeof(std::int32_t));
  }
  std::vector<std::int32_t> in(want.size(), -1);
  for (int round = 0; round < 3; ++round) {
    group.exchange(out.data(), sizes_out, in.data(), sizes_in, "runs");
    EXPECT_EQ(in, want) << "rank " << rank;
  }
}

TEST_F(AllToAllTest, BringsEveryRunToItsRankInRankOrder) {
  for (const std::uint32_t size : {1U, 2U, 3U, 5U}) {
    std::vector<std::shared_ptr<AllToAll>> members;
    for (std::uint32_t rank = 0; rank < size; ++rank)
      members.push_back(join(rank, size));
    std::vector<std::thread> threads;
    for (const auto& member : members)
      threads.emplace_back([&member] { exchange_and_check(*member); });
    for (std::thread& thread : threads)
      thread.join();
  }
}

TEST_F(AllToAllTest, AbortEndsAMemberThatWaits_I7) {
  const auto left = join(0, 2);
  const auto right = join(1, 2);
  std::thread waiting([&] {
    std::int32_t nothing = 0;
    const std::vector<std::size_t> none{0, 0};
    const std::vector<std::size_t> one{sizeof nothing, 0};
    EXPECT_THROW(right->exchange(&nothing, none, &nothing, one, "never"),
                 FailureError);
  });
  registry_.abort_all({Errc::aborted, "test", "enough", ""});
  waiting.join();
}

} // namespace
} // namespace troupe::net
