// All-reduce of fp32 sums beside Gloo in the same run: threads of one process
// and processes of one host, 2 and 4 ranks. One JSON line; the median of the
// slowest rank's times. Gloo lives in libtorch: only this file includes it.
#include "net/data_plane.hpp"
#include "net/host_collectives.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "tests/bench/bench_support.hpp"

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

namespace {

using namespace troupe;
using namespace troupe::net;
using bench::ForkedPeer;
using bench::Talk;
using namespace std::chrono_literals;

constexpr std::size_t kSizesBytes[] = {4 << 10, 256 << 10, 16 << 20, 64 << 20};
constexpr int kSizes = 4;

struct Case {
  std::uint32_t ranks;
  bool processes;
  std::string folder; ///< of this run, for rendezvous
};
/// Seconds of one all-reduce, by size.
struct Times {
  double troupe[kSizes], sockets[kSizes], gloo[kSizes];
};

int rounds_for(std::size_t bytes) {
  return bytes <= (256u << 10) ? 200 : 10;
}

/// Median over rounds; each round begins together.
double time_rounds(Collectives& group, std::size_t bytes,
                   const std::function<void()>& once) {
  std::vector<double> times;
  const int rounds = rounds_for(bytes);
  for (int round = -rounds / 5 - 1; round < rounds; ++round) {
    group.barrier("round");
    const double seconds = bench::seconds_of(once);
    if (round >= 0)
      times.push_back(seconds);
  }
  return bench::median(times);
}

c10::intrusive_ptr<c10d::ProcessGroupGloo> make_gloo(const Case& c,
                                                     std::uint32_t rank) {
  auto store = c10::make_intrusive<c10d::FileStore>(
    c.folder + "/gloo" + std::to_string(c.ranks)
      + (c.processes ? "processes" : "threads"),
    static_cast<int>(c.ranks));
  auto options = c10d::ProcessGroupGloo::Options::create(60s);
  options->devices.push_back(
    c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
    store, static_cast<int>(rank), static_cast<int>(c.ranks), options);
}

GroupSpec group_spec(const Case& c, std::uint32_t rank, Transport transport) {
  GroupSpec spec;
  spec.name = c.folder + std::to_string(c.ranks)
              + std::to_string(static_cast<int>(transport));
  spec.index = rank;
  for (std::uint32_t member = 0; member < c.ranks; ++member)
    spec.members.push_back({WorkerId(c.processes ? member : 0), "here"});
  spec.transport = transport;
  return spec;
}

Times measure(const Case& c, std::uint32_t rank, GroupRegistry& registry) {
  at::set_num_threads(1);
  auto group = make_host_collectives(
    group_spec(c, rank,
               c.processes ? Transport::shared_memory : Transport::threads),
    registry);
  auto chain
    = make_host_collectives(group_spec(c, rank, Transport::sockets), registry);
  auto gloo = make_gloo(c, rank);
  Times times{};
  for (int i = 0; i < kSizes; ++i) {
    const std::size_t bytes = kSizesBytes[i], count = bytes / 4;
    const Buffer memory = make_buffer(bytes);
    float* data = memory.as<float>().data();
    std::fill_n(data, count, 1e-30f);
    std::vector<at::Tensor> tensors{
      at::from_blob(data, {static_cast<std::int64_t>(count)})};
    times.troupe[i] = time_rounds(*group, bytes, [&] {
      group->all_reduce_sum(data, count, DType::f32, "bench");
    });
    times.sockets[i] = time_rounds(*group, bytes, [&] {
      chain->all_reduce_sum(data, count, DType::f32, "bench");
    });
    std::fill_n(data, count, 1e-30f);
    times.gloo[i]
      = time_rounds(*group, bytes, [&] { gloo->allreduce(tensors)->wait(); });
  }
  group->barrier("leave");
  return times;
}

void keep_slowest(Times& sum, const Times& more) {
  for (int i = 0; i < kSizes; ++i) {
    sum.troupe[i] = std::max(sum.troupe[i], more.troupe[i]);
    sum.sockets[i] = std::max(sum.sockets[i], more.sockets[i]);
    sum.gloo[i] = std::max(sum.gloo[i], more.gloo[i]);
  }
}

struct Process {
  explicit Process(std::uint32_t self) {
    DataPlaneOptions options;
    options.self = WorkerId(self);
    options.token = "bench";
    plane = std::make_unique<DataPlane>(options);
    registry.use(*plane);
  }
  std::unique_ptr<DataPlane> plane;
  GroupRegistry registry;
};

Times over_threads(const Case& c) {
  Process process(0);
  std::vector<Times> times(c.ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < c.ranks; ++rank)
    threads.emplace_back(
      [&, rank] { times[rank] = measure(c, rank, process.registry); });
  for (auto& thread : threads)
    thread.join();
  for (const Times& more : times)
    keep_slowest(times[0], more);
  return times[0];
}

/// The parent measures nothing: libtorch's threads do not survive a fork.
Times over_processes(const Case& c) {
  std::vector<std::unique_ptr<ForkedPeer>> peers;
  for (std::uint32_t rank = 0; rank < c.ranks; ++rank)
    peers.push_back(std::make_unique<ForkedPeer>([&, rank](const Talk& talk) {
      std::signal(SIGPIPE, SIG_IGN); // Gloo's sockets raise it
      Process process(rank);
      talk.say(process.plane->port());
      for (std::uint32_t other = 0; other < c.ranks; ++other)
        process.plane->set_peer(WorkerId(other), "127.0.0.1",
                                talk.hear<std::uint16_t>());
      talk.say(measure(c, rank, process.registry));
    }));
  std::vector<std::uint16_t> ports;
  for (auto& peer : peers)
    ports.push_back(peer->talk().hear<std::uint16_t>());
  for (auto& peer : peers)
    for (std::uint16_t port : ports)
      peer->talk().say(port);
  Times slowest{};
  for (auto& peer : peers)
    keep_slowest(slowest, peer->talk().hear<Times>());
  return slowest;
}

void print_case(const Case& c, const Times& times, bool last) {
  for (int i = 0; i < kSizes; ++i)
    std::printf("{\"ranks\": %u, \"members\": \"%s\", \"bytes\": %zu, "
                "\"troupe_ms\": %.4f, \"sockets_ms\": %.4f, \"gloo_ms\": %.4f, "
                "\"times_faster\": %.2f}%s",
                c.ranks, c.processes ? "processes" : "threads", kSizesBytes[i],
                times.troupe[i] * 1e3, times.sockets[i] * 1e3,
                times.gloo[i] * 1e3, times.gloo[i] / times.troupe[i],
                last && i + 1 == kSizes ? "" : ", ");
}

} // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  // Gloo's flight recorder is shared by all groups of a process and crashes
  // where two threads record at once; no entries means no recorder.
  ::setenv("TORCH_FR_BUFFER_SIZE", "0", 1);
  ::setenv("TORCH_NCCL_TRACE_BUFFER_SIZE", "0", 1);
  char pattern[] = "/tmp/troupe_bench_XXXXXX";
  const std::string folder = ::mkdtemp(pattern);
  std::vector<Case> cases;
  for (bool processes : {true, false}) // forks first
    for (std::uint32_t ranks : {2u, 4u})
      cases.push_back({ranks, processes, folder});
  std::printf("{\"bench\": \"collectives\", \"operation\": \"all_reduce_sum\", "
              "\"dtype\": \"f32\", \"cases\": [");
  for (std::size_t i = 0; i < cases.size(); ++i)
    print_case(cases[i],
               cases[i].processes ? over_processes(cases[i])
                                  : over_threads(cases[i]),
               i + 1 == cases.size());
  std::printf("]}\n");
  std::filesystem::remove_all(folder);
}
