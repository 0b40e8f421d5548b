// n members as threads of this process, over each of the three transports, and
// over sockets once more with TLS.
#include "net/collectives/host_collectives.hpp"
#include "net/data_plane/data_plane.hpp"

#include "tests/support/net/group_threads.hpp"
#include "tests/support/net/test_tls.hpp"
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct GroupCase {
  Transport transport;
  std::uint32_t members;
  bool encrypted = false;
};

std::string case_name(const ::testing::TestParamInfo<GroupCase>& info) {
  constexpr const char* names[] = {"", "Threads", "SharedMemory", "Sockets"};
  return names[static_cast<int>(info.param.transport)]
         + std::string(info.param.encrypted ? "Tls" : "")
         + std::to_string(info.param.members);
}

std::string unique_group_name() {
  static std::atomic<int> next = 0;
  return "test/" + std::to_string(::getpid()) + "/" + std::to_string(next++);
}

class HostGroup : public ::testing::TestWithParam<GroupCase> {
protected:
  HostGroup() : name_(unique_group_name()) {
    DataPlaneOptions options;
    options.token = "secret";
    if (GetParam().encrypted)
      options.tls = troupe::test::new_run_tls();
    plane_ = std::make_unique<DataPlane>(options);
    registry_.use(*plane_);
  }

  GroupSpec spec(std::uint32_t rank) const {
    GroupSpec made;
    made.name = name_;
    made.index = rank;
    made.members.assign(GetParam().members, {WorkerId(0), "here"});
    made.transport = GetParam().transport;
    made.progress_deadline = deadline_;
    return made;
  }

  /// Runs each member in its thread; its exception becomes its failure.
  std::vector<std::optional<Failure>>
  run_members(const std::function<void(Collectives&)>& body) {
    return troupe::testing::run_group(
      GetParam().members,
      [this](std::uint32_t rank) {
        return make_host_collectives(spec(rank), registry_);
      },
      body, leave_together_);
  }
  void expect_success(const std::function<void(Collectives&)>& body) {
    for (const auto& failure : run_members(body))
      EXPECT_FALSE(failure) << to_string(*failure);
  }

  std::string name_;
  std::chrono::milliseconds deadline_ = 60s;
  bool leave_together_ = true;
  std::unique_ptr<DataPlane> plane_;
  GroupRegistry registry_;
};

/// Values of rank `rank`, of very different magnitudes: another order of
/// additions gives other bits.
template <class T>
std::vector<T> values_of(std::uint32_t rank, std::size_t count) {
  std::vector<T> values(count);
  std::uint32_t random = 2654435761u * (rank + 1);
  for (T& value : values) {
    random = random * 1664525u + 1013904223u;
    const double size = static_cast<double>(random >> 12) - 524288.0;
    if constexpr (std::is_floating_point_v<T>)
      value = static_cast<T>(size * (random & 0x800 ? 1.37e-5 : 1.1));
    else
      value = static_cast<T>(size);
  }
  return values;
}

template <class T>
std::vector<T> rank_order_sum(std::uint32_t members, std::size_t count) {
  std::vector<T> sum = values_of<T>(0, count);
  for (std::uint32_t rank = 1; rank < members; ++rank) {
    const std::vector<T> more = values_of<T>(rank, count);
    for (std::size_t i = 0; i < count; ++i)
      sum[i] = sum[i] + more[i];
  }
  return sum;
}

/// One element, few elements, one chunk and a bit, several chunks, none.
const std::size_t kCounts[] = {1, 7, 1000, 4097, 300'001, 600'011, 0};

template <class T>
void check_all_reduce(Collectives& group, DType dtype) {
  for (std::size_t count : kCounts) {
    std::vector<T> data = values_of<T>(group.rank(), count);
    group.all_reduce_sum(data.data(), count, dtype, "sum");
    const std::vector<T> expected = rank_order_sum<T>(group.size(), count);
    ASSERT_TRUE(count == 0
                || std::memcmp(data.data(), expected.data(), count * sizeof(T))
                     == 0)
      << to_string(dtype) << " x " << count;
  }
}

TEST_P(HostGroup, SumsAreInRankOrderBitForBit_I8) {
  expect_success([](Collectives& group) {
    check_all_reduce<float>(group, DType::f32);
    check_all_reduce<double>(group, DType::f64);
    check_all_reduce<std::int32_t>(group, DType::i32);
    check_all_reduce<std::int64_t>(group, DType::i64);
  });
}

std::uint16_t bf16_of(float value) { // exact for the values used here
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

TEST_P(HostGroup, Bf16IsSummedInFp32AndRoundedOnce) {
  expect_success([](Collectives& group) {
    // 256 + 1 + ... would stay 256 if every addition were rounded to 8 bits.
    for (std::size_t count : {std::size_t{5}, std::size_t{700'000}}) {
      std::vector<std::uint16_t> data(
        count, bf16_of(group.rank() == 0 ? 256.0f : 1.0f));
      group.all_reduce_sum(data.data(), count, DType::bf16, "bf16");
      const float exact = 256.0f + static_cast<float>(group.size() - 1);
      // one rounding to even: 257 -> 256, 258 -> 258, 259 -> 260
      const float expected = exact == 257.0f   ? 256.0f
                             : exact == 259.0f ? 260.0f
                                               : exact;
      for (std::uint16_t value : data)
        ASSERT_EQ(value, bf16_of(expected));
    }
  });
}

TEST_P(HostGroup, GatherBroadcastAndScatterKeepRankOrder) {
  expect_success([](Collectives& group) {
    const std::uint32_t n = group.size(), me = group.rank();
    for (std::size_t count : {std::size_t{3}, std::size_t{400'000}}) {
      const std::vector<float> mine = values_of<float>(me, count);
      std::vector<float> all(n * count);
      group.all_gather(mine.data(), all.data(), count, DType::f32, "gather");
      for (std::uint32_t rank = 0; rank < n; ++rank)
        ASSERT_TRUE(std::equal(all.begin() + rank * count,
                               all.begin() + (rank + 1) * count,
                               values_of<float>(rank, count).begin()));
      // In place: mine is my part of the whole.
      const std::vector<float> big = values_of<float>(me, n * count);
      std::vector<float> part = big;
      group.reduce_scatter_sum(part.data(), part.data() + me * count, count,
                               DType::f32, "scatter");
      const std::vector<float> sum = rank_order_sum<float>(n, n * count);
      for (std::size_t i = 0; i < n * count; ++i)
        ASSERT_EQ(part[i], i / count == me ? sum[i] : big[i]);
      for (std::uint32_t root = 0; root < n; ++root) {
        std::vector<float> data = values_of<float>(me, count);
        group.broadcast(data.data(), count, DType::f32, root, "broadcast");
        ASSERT_EQ(data, values_of<float>(root, count));
      }
      group.barrier("barrier");
    }
  });
}

TEST_P(HostGroup, ManySmallCallsOfAllKindsInARow) {
  expect_success([](Collectives& group) {
    for (int round = 0; round < 300; ++round) {
      std::int32_t number = round;
      group.all_reduce_sum(&number, 1, DType::i32, "small");
      ASSERT_EQ(number, round * static_cast<int>(group.size()));
      std::vector<std::int32_t> all(group.size());
      number = static_cast<std::int32_t>(group.rank()) + round;
      group.all_gather(&number, all.data(), 1, DType::i32, "gather");
      ASSERT_EQ(all.back(), static_cast<int>(group.size()) - 1 + round);
      if (round % 50 != 0)
        continue;
      std::vector<std::int32_t> large(300'000, 1);
      group.all_reduce_sum(large.data(), large.size(), DType::i32, "large");
      ASSERT_EQ(large.back(), static_cast<int>(group.size()));
    }
  });
}

TEST_P(HostGroup, AbortWakesEveryWaiter_I7) {
  leave_together_ = false;
  const std::uint32_t missing = GetParam().members - 1;
  std::atomic<std::uint32_t> calling = 0;
  const auto failures = run_members([&](Collectives& group) {
    float data[100] = {};
    if (group.rank() != missing) {
      ++calling;
      group.all_reduce_sum(data, 100, DType::f32, "gradients");
      return;
    }
    while (calling.load() != missing)
      std::this_thread::yield();
    std::thread other([&] {
      group.abort({Errc::aborted, "master", "stop", "disk full"});
    });
    other.join();
    group.all_reduce_sum(data, 100, DType::f32, "gradients");
  });
  for (const auto& failure : failures)
    ASSERT_TRUE(failure);
  EXPECT_EQ(failures[missing]->cause, "disk full");
  if (GetParam().transport == Transport::sockets)
    return; // the others see closed connections
  for (const auto& failure : failures)
    EXPECT_EQ(failure->cause, "disk full") << "the root cause is kept";
}

TEST_P(HostGroup, AbortAllReachesEveryGroupOfTheProcess) {
  leave_together_ = false;
  std::atomic<bool> waiting = false;
  std::thread stopper([&] {
    while (!waiting.load())
      std::this_thread::yield();
    registry_.abort_all({Errc::aborted, "node", "stop", ""});
  });
  const auto failures = run_members([&](Collectives& group) {
    if (group.rank() == 0) {
      waiting = true;
      group.barrier("never");
    } else { // keeps the group alive until it is aborted
      for (;;)
        group.barrier("alone");
    }
  });
  stopper.join();
  for (const auto& failure : failures)
    EXPECT_TRUE(failure);
}

TEST_P(HostGroup, ACallOnAnAbortedGroupFails_I7) {
  leave_together_ = false;
  std::atomic<bool> aborted = false;
  const auto failures = run_members([&](Collectives& group) {
    if (group.rank() == 0) {
      registry_.abort_all({Errc::aborted, "node", "stop", "disk full"});
      aborted = true;
    } else {
      while (!aborted.load())
        std::this_thread::yield();
    }
    group.barrier("late");
  });
  const auto late
    = run_members([&](Collectives& group) { group.barrier("later"); });
  for (const auto& failure : failures)
    EXPECT_TRUE(failure);
  for (const auto& failure : late)
    EXPECT_TRUE(failure);
}

TEST_P(HostGroup, ASilentMemberIsNamedAtTheProgressDeadline) {
  leave_together_ = false;
  deadline_ = 1s; // of handshakes too
  std::atomic<bool> over = false;
  const auto failures = run_members([&](Collectives& group) {
    if (group.rank() == 0) {
      while (!over.load())
        std::this_thread::yield();
      return;
    }
    const auto raise = [](std::atomic<bool>* flag) { flag->store(true); };
    const std::unique_ptr<std::atomic<bool>, decltype(raise)> at_end(&over,
                                                                     raise);
    group.barrier("lonely");
  });
  ASSERT_TRUE(failures[1]);
  EXPECT_THAT(to_string(*failures[1]), HasSubstr("lonely"));
  EXPECT_THAT(to_string(*failures[1]), HasSubstr("rank 0"));
}

TEST_P(HostGroup, MismatchedCallsAreAnError) {
  leave_together_ = false;
  const auto failures = run_members([&](Collectives& group) {
    float data[8] = {};
    group.all_reduce_sum(data, group.rank() == 0 ? 4 : 8, DType::f32, "grads");
    group.barrier("not reached");
  });
  for (const auto& failure : failures)
    ASSERT_TRUE(failure);
  EXPECT_THAT(to_string(*failures[1]), HasSubstr("grads"));
}

TEST_P(HostGroup, ALeavingMemberFailsTheOthers) {
  leave_together_ = false;
  const auto failures = run_members([&](Collectives& group) {
    group.barrier("start");
    if (group.rank() != 0)
      group.barrier("waits for rank 0");
  });
  EXPECT_FALSE(failures[0]);
  for (std::uint32_t rank = 1; rank < GetParam().members; ++rank)
    ASSERT_TRUE(failures[rank]);
  EXPECT_EQ(failures[1]->code, Errc::peer_lost);
}

INSTANTIATE_TEST_SUITE_P(
  Transports, HostGroup,
  ::testing::Values(
    GroupCase{Transport::threads, 2}, GroupCase{Transport::threads, 3},
    GroupCase{Transport::threads, 4}, GroupCase{Transport::shared_memory, 2},
    GroupCase{Transport::shared_memory, 3},
    GroupCase{Transport::shared_memory, 4}, GroupCase{Transport::sockets, 2},
    GroupCase{Transport::sockets, 3}, GroupCase{Transport::sockets, 4},
    GroupCase{Transport::sockets, 2, true},
    GroupCase{Transport::sockets, 3, true},
    GroupCase{Transport::sockets, 4, true}),
  case_name);

TEST(HostCollectives, AGroupOfOneNeverWaits) {
  GroupRegistry registry;
  GroupSpec spec;
  spec.name = unique_group_name();
  spec.members = {{WorkerId(0), "here"}};
  auto group = make_host_collectives(spec, registry);
  float data = 3, all = 0;
  group->all_reduce_sum(&data, 1, DType::f32, "sum");
  group->all_gather(&data, &all, 1, DType::f32, "gather");
  EXPECT_EQ(all, 3);
  spec.index = 1;
  EXPECT_THROW(make_host_collectives(spec, registry), InvariantError);
  spec.index = 0;
  EXPECT_THROW(group->all_reduce_sum(&data, 1, DType::u8, "sum"),
               InvariantError);
}

} // namespace
} // namespace troupe::net
