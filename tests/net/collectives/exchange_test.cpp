// Exchanges of pieces between threads of this process over every kind of
// group: the transports of hosts, NCCL's stand-in, and memory of a device
// without NCCL, which faults when the host touches it.
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/nccl_collectives.hpp"
#include "net/collectives/staged_collectives.hpp"
#include "net/data_plane/data_plane.hpp"

#include "tests/support/nccl/fake_nccl.hpp"
#include "tests/support/net/far_pages.hpp"
#include "tests/support/net/group_threads.hpp"
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <deque>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using troupe::testing::FakeNccl;
using troupe::testing::FarPages;

enum class Over : std::uint8_t {
  threads,
  shared_memory,
  sockets,
  nccl,
  staged
};

struct ExchangeCase {
  Over over;
  std::uint32_t members;
};

std::string exchange_name(const ::testing::TestParamInfo<ExchangeCase>& info) {
  constexpr const char* names[]
    = {"Threads", "SharedMemory", "Sockets", "Nccl", "Staged"};
  return names[static_cast<int>(info.param.over)]
         + std::to_string(info.param.members);
}

/// Sizes of the pieces of a pair: other ones for each, none for some, one that
/// is longer than a chunk of the staging memory, and more than one group of
/// NCCL's calls has.
std::vector<std::size_t> sizes_of(std::uint32_t from, std::uint32_t to) {
  if (from == 1 && to == 0)
    return std::vector<std::size_t>(1200, 3);
  if (from == 0 && to == 1)
    return {5, 0, std::size_t{9} << 20, 1};
  if (from == 2)
    return {};
  return {1 + from, 4097 + 3 * to, 70'000};
}

std::byte byte_of(std::uint32_t from, std::uint32_t to, std::size_t piece,
                  std::size_t i) {
  return static_cast<std::byte>(from * 31 + to * 17 + piece * 7 + i * 13
                                + (i >> 8) + 1);
}

/// Memory for the pieces of a test.
class PieceMemory {
public:
  explicit PieceMemory(Over over) : over_(over) {}

  std::byte* take(std::size_t bytes) {
    if (over_ == Over::staged)
      return static_cast<std::byte*>(FarPages::memory().take(bytes));
    auto& block = blocks_.emplace_back(bytes);
    if (over_ == Over::nccl)
      FakeNccl::instance().count_as_gpu(block.data(), bytes);
    return block.data();
  }
  void write(const std::vector<std::byte>& bytes, std::byte* to) const {
    if (over_ == Over::staged)
      FarPages::memory().write(bytes.data(), to, bytes.size());
    else
      std::ranges::copy(bytes, to);
  }
  std::vector<std::byte> read(const std::byte* from, std::size_t bytes) const {
    std::vector<std::byte> result(bytes);
    if (over_ == Over::staged)
      FarPages::memory().read(from, result.data(), bytes);
    else
      std::copy_n(from, bytes, result.begin());
    return result;
  }

private:
  Over over_;
  std::deque<std::vector<std::byte>> blocks_;
};

/// All pieces of one member, sent and expected.
class MemberPieces {
public:
  MemberPieces(Over over, std::uint32_t rank, std::uint32_t size)
    : rank_(rank),
      memory_(over) {
    for (std::uint32_t peer = 0; peer < size; ++peer) {
      std::size_t index = 0;
      for (const std::size_t bytes : sizes(over, rank, peer)) {
        auto* data = memory_.take(bytes);
        memory_.write(content(rank, peer, index++, bytes), data);
        sent_.push_back({peer, data, bytes});
      }
      for (const std::size_t bytes : sizes(over, peer, rank))
        received_.push_back({peer, memory_.take(bytes), bytes});
    }
  }
  Pieces pieces() const {
    return {sent_, received_};
  }
  void expect_all_received() const {
    std::vector<std::size_t> index(received_.back().peer + 1);
    for (const ReceivedPiece& piece : received_) {
      const std::size_t number = index[piece.peer]++;
      ASSERT_EQ(memory_.read(piece.data, piece.bytes),
                content(piece.peer, rank_, number, piece.bytes))
        << "piece " << number << " from " << piece.peer << " to " << rank_;
    }
  }

private:
  /// The far memory is small.
  static std::vector<std::size_t> sizes(Over over, std::uint32_t from,
                                        std::uint32_t to) {
    auto all = sizes_of(from, to);
    if (over != Over::staged)
      return all;
    all.resize(std::min<std::size_t>(all.size(), 5));
    for (std::size_t& bytes : all)
      bytes = std::min<std::size_t>(bytes, 5000);
    return all;
  }
  static std::vector<std::byte> content(std::uint32_t from, std::uint32_t to,
                                        std::size_t piece, std::size_t bytes) {
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      made[i] = byte_of(from, to, piece, i);
    return made;
  }

  std::uint32_t rank_;
  PieceMemory memory_;
  std::vector<SentPiece> sent_;
  std::vector<ReceivedPiece> received_;
};

class ExchangeTest : public ::testing::TestWithParam<ExchangeCase> {
protected:
  ExchangeTest() {
    DataPlaneOptions options;
    options.token = "secret";
    plane_ = std::make_unique<DataPlane>(options);
    registry_.use(*plane_);
  }

  std::vector<std::optional<Failure>>
  run(const std::function<void(Collectives&)>& body) {
    static std::atomic<int> next = 0;
    name_
      = "exchange/" + std::to_string(::getpid()) + "/" + std::to_string(next++);
    return troupe::testing::run_group(
      GetParam().members, [this](std::uint32_t rank) { return join(rank); },
      body, leave_together_);
  }
  std::shared_ptr<Collectives> join(std::uint32_t rank) {
    GroupSpec spec;
    spec.name = name_;
    spec.index = rank;
    spec.members.assign(GetParam().members, {WorkerId(0), "here"});
    spec.progress_deadline = 20s;
    if (GetParam().over == Over::shared_memory)
      spec.transport = Transport::shared_memory;
    if (GetParam().over == Over::sockets)
      spec.transport = Transport::sockets;
    auto host = make_host_collectives(spec, registry_);
    if (GetParam().over == Over::staged)
      return make_staged_collectives(host, FarPages::memory());
    if (GetParam().over != Over::nccl)
      return host;
    return make_nccl_collectives(
      {.group = name_,
       .host = host,
       .device = 0,
       .progress_deadline = 20s,
       .offers = troupe::testing::nccl_of(GetParam().members)},
      FakeNccl::library());
  }

  std::string name_;
  bool leave_together_ = true;
  std::unique_ptr<DataPlane> plane_;
  GroupRegistry registry_;
};

TEST_P(ExchangeTest, BringsEveryPieceToItsPlace) {
  const auto groups = FakeNccl::instance().groups();
  std::deque<MemberPieces> members;
  for (std::uint32_t rank = 0; rank < GetParam().members; ++rank)
    members.emplace_back(GetParam().over, rank, GetParam().members);
  const auto failures = run([&](Collectives& group) {
    group.exchange(members[group.rank()].pieces(), "weights");
  });
  for (const auto& failure : failures)
    EXPECT_FALSE(failure) << to_string(*failure);
  for (const MemberPieces& each : members)
    each.expect_all_received();
  EXPECT_EQ(FakeNccl::instance().groups() - groups,
            GetParam().over == Over::nccl ? 1 : 0);
}

TEST_P(ExchangeTest, ListsThatDoNotFitFailByNameInAllMembers_I7) {
  std::vector<std::byte> data(8);
  const std::vector<ReceivedPiece> cut{{0, data.data(), 4},
                                       {0, data.data() + 4, 4}};
  for (const bool is_shorter : {true, false}) {
    const auto failures = run([&](Collectives& group) {
      const SentPiece sent{1, data.data(), 8};
      Pieces mine;
      if (group.rank() == 0)
        mine.sent = {&sent, 1};
      if (group.rank() == 1)
        mine.received = std::span(cut).first(is_shorter ? 1 : 2);
      group.exchange(mine, "weights");
    });
    for (const auto& failure : failures) {
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->code, Errc::bug);
      EXPECT_THAT(
        to_string(*failure),
        AllOf(HasSubstr("rank 0 in 'weights'"), HasSubstr("to rank 1"),
              HasSubstr(is_shorter ? "expects 4" : "in other pieces")));
    }
  }
}

TEST_P(ExchangeTest, AMemberThatLeavesEndsTheOthers_I7) {
  leave_together_ = false;
  const auto failures = run([&](Collectives& group) {
    const MemberPieces mine(GetParam().over, group.rank(), group.size());
    group.exchange(mine.pieces(), "weights");
    if (group.rank() == 1)
      throw FailureError{{Errc::io, "rank 1", "had an accident", ""}};
    group.exchange(mine.pieces(), "more weights");
  });
  for (const auto& failure : failures) {
    ASSERT_TRUE(failure);
    EXPECT_NE(failure->code, Errc::deadline) << to_string(*failure);
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, ExchangeTest,
                         ::testing::Values(ExchangeCase{Over::threads, 2},
                                           ExchangeCase{Over::threads, 4},
                                           ExchangeCase{Over::shared_memory, 3},
                                           ExchangeCase{Over::sockets, 2},
                                           ExchangeCase{Over::sockets, 4},
                                           ExchangeCase{Over::nccl, 2},
                                           ExchangeCase{Over::nccl, 3},
                                           ExchangeCase{Over::nccl, 4},
                                           ExchangeCase{Over::staged, 3}),
                         exchange_name);

} // namespace
} // namespace troupe::net
