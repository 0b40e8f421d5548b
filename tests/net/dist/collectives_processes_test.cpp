// Groups over two processes, over shared memory and over sockets.
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/shared_collectives.hpp"
#include "net/data_plane/data_plane.hpp"

#include "tests/net/dist/forked_peer.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <future>
#include <thread>
#include <tuple>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using testing::ForkedPeer;
using testing::Talk;

/// Limit for noticing a death. It takes tens of milliseconds, and must take
/// less than 1 s on an idle machine; this only separates it from the progress
/// deadline of 60 s.
constexpr auto kNoticed = 5s;

/// One process of the group: `threads` members of `all`.
class GroupProcess {
public:
  GroupProcess(Transport transport, std::uint32_t worker, std::uint32_t workers,
               std::uint32_t threads)
    : transport_(transport),
      worker_(worker),
      workers_(workers),
      threads_(threads) {
    DataPlaneOptions options;
    options.self = WorkerId(worker);
    options.token = "secret";
    plane_ = std::make_unique<DataPlane>(options);
    registry_.use(*plane_);
  }
  std::uint16_t port() const {
    return plane_->port();
  }
  void set_peer(std::uint32_t worker, std::uint16_t port) {
    plane_->set_peer(WorkerId(worker), "127.0.0.1", port);
  }
  std::shared_ptr<Collectives> join(const std::string& name,
                                    std::uint32_t thread,
                                    std::chrono::milliseconds deadline = 60s) {
    GroupSpec spec;
    spec.name = name;
    spec.index = worker_ * threads_ + thread;
    for (std::uint32_t worker = 0; worker < workers_; ++worker)
      spec.members.insert(spec.members.end(), threads_,
                          {WorkerId(worker), "here"});
    spec.transport = transport_;
    spec.progress_deadline = deadline;
    return make_host_collectives(spec, registry_);
  }

  /// A group of the first member of either process; `first` has rank 0.
  std::shared_ptr<Collectives> join_pair(const std::string& name,
                                         std::uint32_t first) {
    GroupSpec spec;
    spec.name = name;
    spec.index = worker_ == first ? 0 : 1;
    spec.members = {{WorkerId(first), "here"}, {WorkerId(1 - first), "here"}};
    spec.transport = transport_;
    spec.progress_deadline = 20s;
    return make_host_collectives(spec, registry_);
  }

private:
  Transport transport_;
  std::uint32_t worker_, workers_, threads_;
  std::unique_ptr<DataPlane> plane_;
  GroupRegistry registry_;
};

std::string process_group_name(const char* text) {
  return std::string("dist/") + text + "/" + std::to_string(::getpid());
}

/// Sums values whose order of additions shows in the bits; returns a checksum.
std::uint64_t sum_checksum(Collectives& group) {
  std::uint64_t hash = 0;
  for (std::size_t count :
       {std::size_t{1}, std::size_t{5000}, std::size_t{700'001}}) {
    std::vector<float> data(count);
    for (std::size_t i = 0; i < count; ++i)
      data[i] = (group.rank() % 2 ? 1e-3f : 1e4f)
                / static_cast<float>(1 + (i + group.rank()) % 97);
    group.all_reduce_sum(data.data(), count, DType::f32, "sum");
    for (float value : data) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, 4);
      hash = hash * 1099511628211u + bits;
    }
  }
  return hash;
}

/// Runs all members of one process; returns their common checksum (0 if they
/// differ).
std::uint64_t checksum_of_process(GroupProcess& process,
                                  const std::string& name,
                                  std::uint32_t threads) {
  std::vector<std::uint64_t> sums(threads);
  std::vector<std::thread> members;
  for (std::uint32_t thread = 0; thread < threads; ++thread)
    members.emplace_back([&, thread] {
      auto group = process.join(name, thread);
      sums[thread] = sum_checksum(*group);
      group->barrier("leave");
    });
  for (auto& member : members)
    member.join();
  for (std::uint64_t sum : sums)
    if (sum != sums[0])
      return 0;
  return sums[0];
}

std::uint64_t two_process_checksum(Transport transport, std::uint32_t threads) {
  const std::string name = process_group_name("sum");
  ForkedPeer peer([&](const Talk& talk) {
    GroupProcess process(transport, 1, 2, threads);
    talk.say(process.port());
    process.set_peer(0, talk.hear<std::uint16_t>());
    talk.say(checksum_of_process(process, name, threads));
  });
  GroupProcess process(transport, 0, 2, threads);
  process.set_peer(1, peer.talk().hear<std::uint16_t>());
  peer.talk().say(process.port());
  const std::uint64_t mine = checksum_of_process(process, name, threads);
  EXPECT_EQ(peer.talk().hear<std::uint64_t>(), mine);
  EXPECT_EQ(peer.wait(), 0);
  return mine;
}

std::uint64_t one_process_checksum(std::uint32_t threads) {
  GroupProcess process(Transport::threads, 0, 1, threads);
  return checksum_of_process(process, process_group_name("one"), threads);
}

TEST(CollectivesProcesses, EveryTransportGivesTheSameBits_I8) {
  const std::uint64_t shared
    = two_process_checksum(Transport::shared_memory, 1);
  const std::uint64_t sockets = two_process_checksum(Transport::sockets, 1);
  const std::uint64_t threads = one_process_checksum(2);
  EXPECT_NE(shared, 0u);
  EXPECT_EQ(shared, threads);
  EXPECT_EQ(sockets, threads);
}

TEST(CollectivesProcesses, TwoProcessesOfTwoThreadsEqualFourThreads_I8) {
  const std::uint64_t mixed = two_process_checksum(Transport::shared_memory, 2);
  const std::uint64_t sockets = two_process_checksum(Transport::sockets, 2);
  EXPECT_EQ(mixed, one_process_checksum(4));
  EXPECT_EQ(sockets, mixed);
}

/// Returns the checksums of groups "0" and "1" of two processes, whose only
/// thread joins one after the other; each process is first in one group.
std::uint64_t checksum_of_two_groups(GroupProcess& process,
                                     const std::string& name,
                                     std::uint32_t joins_first) {
  std::shared_ptr<Collectives> groups[2];
  for (const std::uint32_t number : {joins_first, 1 - joins_first})
    groups[number] = process.join_pair(name + std::to_string(number), number);
  std::uint64_t sum = 0;
  for (const auto& group : groups)
    sum = sum * 31 + sum_checksum(*group);
  for (const auto& group : groups)
    group->barrier("leave");
  return sum;
}

/// Counts the descriptors of this process that refer to processes.
std::ptrdiff_t pidfds() {
  std::error_code ignored;
  return std::ranges::count_if(
    std::filesystem::directory_iterator("/proc/self/fd"),
    [&](const auto& entry) {
      return std::filesystem::read_symlink(entry.path(), ignored)
               .string()
               .find("pidfd")
             != std::string::npos;
    });
}

/// Runs all members of one process in `groups` groups with the other process.
void meet(GroupProcess& process, const std::string& name, std::uint32_t threads,
          std::uint32_t groups) {
  std::vector<std::thread> members;
  for (std::uint32_t i = 0; i < threads * groups; ++i)
    members.emplace_back([&, i] {
      process.join(name + std::to_string(i / threads), i % threads)
        ->barrier("meet");
    });
  for (auto& member : members)
    member.join();
}

TEST(CollectivesProcesses, MembersAndGroupsShareOneDescriptorPerPeerProcess) {
  constexpr std::uint32_t threads = 6;
  constexpr std::uint32_t groups = 3;
  const std::string name = process_group_name("descriptors");
  ForkedPeer peer([&](const Talk& talk) {
    GroupProcess process(Transport::shared_memory, 1, 2, threads + 1);
    std::vector<std::shared_ptr<Collectives>> late;
    for (std::uint32_t group = 0; group < groups; ++group)
      late.push_back(process.join(name + std::to_string(group), threads));
    std::thread others([&] { meet(process, name, threads, groups); });
    talk.say(0);
    talk.hear<int>(); // they wait until then and watch each other
    for (const auto& group : late)
      group->barrier("meet");
    others.join();
  });
  peer.talk().hear<int>();
  GroupProcess process(Transport::shared_memory, 0, 2, threads + 1);
  auto waiting = std::async(std::launch::async,
                            [&] { meet(process, name, threads + 1, groups); });
  EXPECT_EQ(waiting.wait_for(1s), std::future_status::timeout);
  EXPECT_EQ(pidfds(), 1);
  peer.talk().say(0);
  waiting.get();
  EXPECT_EQ(peer.wait(), 0);
}

class JoinOrder : public ::testing::TestWithParam<
                    std::tuple<Transport, std::uint32_t, std::uint32_t>> {};

TEST_P(JoinOrder, MembersOfSeveralGroupsJoinInAnyOrder_I7) {
  const auto [transport, mine, theirs] = GetParam();
  const std::string name = process_group_name("order");
  ForkedPeer peer([&, which = transport, first = theirs](const Talk& talk) {
    GroupProcess process(which, 1, 2, 1);
    talk.say(process.port());
    process.set_peer(0, talk.hear<std::uint16_t>());
    talk.say(checksum_of_two_groups(process, name, first));
  });
  GroupProcess process(transport, 0, 2, 1);
  process.set_peer(1, peer.talk().hear<std::uint16_t>());
  peer.talk().say(process.port());
  const auto sum = checksum_of_two_groups(process, name, mine);
  EXPECT_EQ(peer.talk().hear<std::uint64_t>(), sum);
  EXPECT_EQ(peer.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(
  Transports, JoinOrder,
  ::testing::Combine(::testing::Values(Transport::shared_memory,
                                       Transport::sockets),
                     ::testing::Values(0U, 1U), ::testing::Values(0U, 1U)));

TEST(CollectivesProcesses, TheSegmentIsUnlinkedOnceAllAreAttached) {
  GroupRegistry registry;
  GroupSpec spec;
  spec.name = process_group_name("name");
  spec.members.assign(2, {WorkerId(0), "here"});
  spec.transport = Transport::shared_memory;
  const std::string segment = "/dev/shm" + segment_name(spec.name);
  auto first = make_host_collectives(spec, registry);
  EXPECT_TRUE(std::filesystem::exists(segment));
  spec.index = 1;
  auto second = make_host_collectives(spec, registry);
  EXPECT_FALSE(std::filesystem::exists(segment));
}

/// A peer that reduces until it is stopped or the group fails.
void reduce_forever(Collectives& group) {
  std::vector<float> data(1 << 20, 1.0f);
  for (;;) {
    group.all_reduce_sum(data.data(), data.size(), DType::f32, "gradients");
    std::fill(data.begin(), data.end(), 1.0f);
  }
}

struct Stopped {
  Failure failure;
  std::chrono::steady_clock::duration after{};
};

/// Sends `signal_number` to the peer in the middle of the traffic.
Stopped signal_in_traffic(Transport transport, int signal_number,
                          std::chrono::milliseconds deadline) {
  const std::string name = process_group_name("stop");
  ForkedPeer peer([&](const Talk& talk) {
    GroupProcess process(transport, 1, 2, 1);
    talk.say(process.port());
    process.set_peer(0, talk.hear<std::uint16_t>());
    auto group = process.join(name, 0, deadline);
    reduce_forever(*group);
  });
  GroupProcess process(transport, 0, 2, 1);
  process.set_peer(1, peer.talk().hear<std::uint16_t>());
  peer.talk().say(process.port());
  auto group = process.join(name, 0, deadline);
  std::vector<float> data(1 << 20, 1.0f);
  std::chrono::steady_clock::time_point sent;
  try {
    for (int round = 0;; ++round) {
      if (round == 20) {
        sent = std::chrono::steady_clock::now();
        peer.signal(signal_number);
      }
      group->all_reduce_sum(data.data(), data.size(), DType::f32, "gradients");
      std::fill(data.begin(), data.end(), 1.0f);
    }
  } catch (const FailureError& error) {
    return {error.failure(), std::chrono::steady_clock::now() - sent};
  }
}

class StoppedPeer : public ::testing::TestWithParam<Transport> {};

TEST_P(StoppedPeer, KilledDuringAllReduceFailsTheWaiterAtOnce_I7) {
  const Stopped stopped = signal_in_traffic(GetParam(), SIGKILL, 60s);
  EXPECT_EQ(stopped.failure.code, Errc::peer_lost);
  EXPECT_LT(stopped.after, kNoticed);
  EXPECT_THAT(to_string(stopped.failure), ::testing::HasSubstr("gradients"));
}

TEST_P(StoppedPeer, FrozenFailsTheWaiterAtTheProgressDeadline_I7) {
  const Stopped stopped = signal_in_traffic(GetParam(), SIGSTOP, 1s);
  EXPECT_EQ(stopped.failure.code, Errc::deadline);
  EXPECT_GE(stopped.after, 1s);
}

INSTANTIATE_TEST_SUITE_P(Transports, StoppedPeer,
                         ::testing::Values(Transport::shared_memory,
                                           Transport::sockets),
                         [](const auto& which) {
                           return which.param == Transport::sockets
                                    ? std::string("Sockets")
                                    : std::string("SharedMemory");
                         });

} // namespace
} // namespace troupe::net
