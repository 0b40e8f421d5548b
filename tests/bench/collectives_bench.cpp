// All-reduce of fp32 sums, beside Gloo in the same run where the build has it:
// threads of one process and processes of one host, 2 and 4 ranks. The times of
// the slowest rank.
#include "net/collectives/host_collectives.hpp"
#include "net/data_plane/data_plane.hpp"

#include <ATen/Parallel.h>

#include "bench.hpp"
#include "bench_support.hpp"
#include "gloo_peer.hpp"
#include "tests/support/temp_folder.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace troupe::bench {
namespace {

using namespace troupe::net;

constexpr std::array<std::size_t, 4> sizes_bytes
  = {4 << 10, 256 << 10, 16 << 20, 64 << 20};
/// Returns the headline: 16 MiB over the threads of four devices.
constexpr std::uint32_t told_ranks = 4;
constexpr std::size_t told_size = 2;

struct Case {
  std::uint32_t ranks;
  bool processes;
  bool with_gloo;
  std::string folder; ///< of this run, for rendezvous
};

/// Seconds of one all-reduce.
struct Spread {
  double median = 0, min = 0, max = 0;

  void keep_slower(const Spread& other) {
    median = std::max(median, other.median);
    min = std::max(min, other.min);
    max = std::max(max, other.max);
  }
};

/// Times by size. Sent between processes as raw bytes.
struct Times {
  std::array<Spread, sizes_bytes.size()> troupe, sockets, gloo;

  void keep_slower(const Times& other) {
    for (std::size_t i = 0; i < sizes_bytes.size(); ++i) {
      troupe[i].keep_slower(other.troupe[i]);
      sockets[i].keep_slower(other.sockets[i]);
      gloo[i].keep_slower(other.gloo[i]);
    }
  }
};

int rounds_for(std::size_t bytes) {
  return bytes <= (256u << 10) ? 200 : 10;
}

/// Runs rounds that start together; the first ones warm up.
Spread time_rounds(Collectives& group, std::size_t bytes,
                   const std::function<void()>& once) {
  std::vector<double> times;
  const int rounds = rounds_for(bytes);
  for (int round = -rounds / 5 - 1; round < rounds; ++round) {
    group.barrier("round");
    const double seconds = seconds_of(once);
    if (round >= 0)
      times.push_back(seconds);
  }
  const auto [least, most] = std::ranges::minmax(times);
  return {median(times), least, most};
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
  std::optional<GlooPeer> gloo;
  if (c.with_gloo)
    gloo.emplace(c.folder + "/gloo" + std::to_string(c.ranks)
                   + (c.processes ? "processes" : "threads"),
                 rank, c.ranks);
  Times times{};
  for (std::size_t i = 0; i < sizes_bytes.size(); ++i) {
    const std::size_t bytes = sizes_bytes[i], count = bytes / 4;
    const Buffer memory = make_buffer(bytes);
    float* data = memory.as<float>().data();
    const auto time = [&](const std::function<void()>& once) {
      std::fill_n(data, count, 1e-30f);
      return time_rounds(*group, bytes, once);
    };
    times.troupe[i]
      = time([&] { group->all_reduce_sum(data, count, DType::f32, "bench"); });
    times.sockets[i]
      = time([&] { chain->all_reduce_sum(data, count, DType::f32, "bench"); });
    if (gloo)
      times.gloo[i] = time([&] { gloo->all_reduce_sum(data, count); });
  }
  group->barrier("leave");
  return times;
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
    times[0].keep_slower(more);
  return times[0];
}

/// The parent measures nothing: libtorch's threads do not survive a fork.
Times over_processes(const Case& c) {
  std::vector<std::unique_ptr<ForkedPeer>> peers;
  for (std::uint32_t rank = 0; rank < c.ranks; ++rank)
    peers.push_back(std::make_unique<ForkedPeer>([&, rank](const Talk& talk) {
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
    slowest.keep_slower(peer->talk().hear<Times>());
  return slowest;
}

nlohmann::json row_of(const Case& c, const Times& times, std::size_t size) {
  const double ours = times.troupe[size].median, gloo = times.gloo[size].median;
  nlohmann::json row = {{"ranks", c.ranks},
                        {"members", c.processes ? "processes" : "threads"},
                        {"bytes", sizes_bytes[size]},
                        {"troupe_ms", ours * 1e3},
                        {"sockets_ms", times.sockets[size].median * 1e3}};
  if (gloo > 0) {
    row["gloo_ms"] = gloo * 1e3;
    row["times_faster"] = gloo / ours;
  }
  return row;
}

} // namespace

nlohmann::json bench_collectives(const Options&) {
  const support::TempFolder folder;
  nlohmann::json document
    = {{"operation", "all_reduce_sum"}, {"rows", nlohmann::json::array()}};
  const bool with_gloo = GlooPeer::is_here();
  for (const bool processes : {true, false}) // forks first
    for (const std::uint32_t ranks : {2u, told_ranks}) {
      const Case c{ranks, processes, with_gloo, folder.path().string()};
      const auto times = processes ? over_processes(c) : over_threads(c);
      for (std::size_t size = 0; size < sizes_bytes.size(); ++size)
        document["rows"].push_back(row_of(c, times, size));
      if (processes || ranks != told_ranks)
        continue;
      const auto& told = times.troupe[told_size];
      const auto bytes = static_cast<double>(sizes_bytes[told_size]);
      document["bytes"] = sizes_bytes[told_size];
      document["ranks"] = ranks;
      document["gb_s"] = bytes / told.median / 1e9;
      document["gb_s_min"] = bytes / told.max / 1e9;
      document["gb_s_max"] = bytes / told.min / 1e9;
      document["n"] = rounds_for(sizes_bytes[told_size]);
    }
  return document;
}

} // namespace troupe::bench
