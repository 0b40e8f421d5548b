// Exchanges between two processes, one of which is killed in one of them.
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/nccl_collectives.hpp"
#include "net/data_plane/data_plane.hpp"

#include <gtest/gtest.h>

#include "tests/net/dist/forked_peer.hpp"
#include "tests/support/nccl/fake_nccl.hpp"

#include <chrono>
#include <csignal>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using testing::ForkedPeer;
using testing::Talk;
using troupe::testing::FakeNccl;

/// Separates the notice of a death, tens of milliseconds, from the progress
/// deadline of 60 s.
constexpr auto exchange_noticed = 5s;

struct ExchangeWay {
  const char* name;
  Transport transport;
  bool has_gpus;
};

/// A member in a process of its own.
class ExchangingProcess {
public:
  ExchangingProcess(const ExchangeWay& way, std::uint32_t rank,
                    const NcclLibrary& library)
    : way_(way),
      rank_(rank),
      library_(library) {
    DataPlaneOptions options;
    options.self = WorkerId(rank);
    options.token = "secret";
    plane_ = std::make_unique<DataPlane>(options);
    registry_.use(*plane_);
    for (auto* data : {&sent_, &received_})
      if (way.has_gpus)
        FakeNccl::instance().count_as_gpu(data->data(), data->size());
  }

  void join(const std::string& name, const Talk& talk) {
    talk.say(plane_->port());
    plane_->set_peer(WorkerId(1 - rank_), "127.0.0.1",
                     talk.hear<std::uint16_t>());
    GroupSpec spec;
    spec.name = name;
    spec.index = rank_;
    spec.members = {{WorkerId(0), "here"}, {WorkerId(1), "here"}};
    spec.transport = way_.transport;
    spec.progress_deadline = 60s;
    group_ = make_host_collectives(spec, registry_);
    if (way_.has_gpus)
      group_ = make_nccl_collectives({.group = name,
                                      .host = group_,
                                      .device = 0,
                                      .progress_deadline = 60s,
                                      .offers = troupe::testing::nccl_of(2)},
                                     library_);
  }
  /// Sends all bytes to the other process; returns whether its bytes came.
  bool exchange() {
    std::ranges::fill(sent_, std::byte(1 + rank_));
    const SentPiece sent{1 - rank_, sent_.data(), sent_.size()};
    const ReceivedPiece received{1 - rank_, received_.data(), received_.size()};
    group_->exchange({{&sent, 1}, {&received, 1}}, "weights");
    return received_
           == std::vector<std::byte>(received_.size(), std::byte(2 - rank_));
  }

private:
  ExchangeWay way_;
  std::uint32_t rank_;
  const NcclLibrary& library_;
  std::vector<std::byte> sent_ = std::vector<std::byte>(3 << 20);
  std::vector<std::byte> received_ = std::vector<std::byte>(3 << 20);
  std::unique_ptr<DataPlane> plane_;
  GroupRegistry registry_;
  std::shared_ptr<Collectives> group_;
};

/// A library with which a process dies at its second send: after all have met.
NcclLibrary deadly_library() {
  auto library = FakeNccl::library();
  library.send = [](const void* from, std::size_t count, int type, int peer,
                    NcclCommunicator communicator, CudaStream stream) {
    static int calls = 0;
    if (++calls == 2)
      ::raise(SIGKILL);
    return FakeNccl::library().send(from, count, type, peer, communicator,
                                    stream);
  };
  return library;
}

class ExchangeProcesses : public ::testing::TestWithParam<ExchangeWay> {};

TEST_P(ExchangeProcesses, AProcessThatIsKilledInOneEndsTheOther_I7) {
  const auto name = "dist/exchange/" + std::to_string(::getpid());
  ForkedPeer peer([&](const Talk& talk) {
    const auto library = deadly_library();
    ExchangingProcess process(GetParam(), 1, library);
    process.join(name, talk);
    talk.say(process.exchange());
    if (GetParam().has_gpus)
      process.exchange(); // which it does not survive
    ::raise(SIGKILL);
  });
  ExchangingProcess process(GetParam(), 0, FakeNccl::library());
  process.join(name, peer.talk());
  EXPECT_TRUE(process.exchange());
  EXPECT_TRUE(peer.talk().hear<bool>());
  const auto begin = std::chrono::steady_clock::now();
  try {
    process.exchange();
    FAIL() << "the other is dead";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::peer_lost)
      << to_string(error.failure());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, exchange_noticed);
  EXPECT_EQ(peer.wait(), -1);
}

INSTANTIATE_TEST_SUITE_P(
  Ways, ExchangeProcesses,
  ::testing::Values(
    ExchangeWay{"SharedMemory", Transport::shared_memory, false},
    ExchangeWay{"Sockets", Transport::sockets, false},
    ExchangeWay{"NcclBesideSharedMemory", Transport::shared_memory, true},
    ExchangeWay{"NcclBesideSockets", Transport::sockets, true}),
  [](const auto& way) { return std::string(way.param.name); });

} // namespace
} // namespace troupe::net
