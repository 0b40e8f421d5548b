// Weights from d2t2 to t4 over four devices, the layouts and parameters of
// shared/bench/reshard.py: in one process, and between four processes whose
// planes lie in shared blocks, or are pulled over TCP; beside plain memcpy of
// as many bytes. In one process other layouts too, in turns with that memcpy.
// Every target is compared with what it must hold. Also the time to plan a 70B
// model's move between layouts of 128 devices.
#include "config/model/model_shape.hpp"
#include "models/parallel/weight_move.hpp"
#include "net/base/page_block.hpp"
#include "net/data_plane/data_plane.hpp"
#include "net/data_plane/peer_memory.hpp"

#include "bench.hpp"
#include "tests/net/dist/forked_peer.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

namespace troupe::bench {
namespace {

using net::PageBlock;
using net::PageSharing;
using net::testing::ForkedPeer;
using net::testing::Talk;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t num_devices = 4;
constexpr std::uint64_t wanted_bytes = 500'000'000;

std::vector<ParameterShape> reshard_model() {
  constexpr std::int64_t hidden = 1024, inner = 2816, vocabulary = 8192;
  std::vector<ParameterShape> all;
  const auto add
    = [&](std::int64_t rows, std::int64_t cols, int layer, int split) {
        ParameterShape shape;
        shape.name = "p" + std::to_string(all.size());
        shape.rows = rows;
        shape.cols = cols;
        shape.layer = layer;
        shape.split_dim = static_cast<std::int8_t>(split);
        all.push_back(shape);
      };
  add(vocabulary, hidden, -1, 0);
  std::uint64_t bytes = vocabulary * hidden * 4;
  constexpr std::uint64_t layer_bytes
    = 4 * (4 * hidden * hidden + 3 * hidden * inner);
  for (int layer = 0; bytes + layer_bytes <= wanted_bytes; ++layer) {
    for (const int split : {0, 0, 0, 1})
      add(hidden, hidden, layer, split);
    add(inner, hidden, layer, 0);
    add(inner, hidden, layer, 0);
    add(hidden, inner, layer, 1);
    bytes += layer_bytes;
  }
  return all;
}

std::vector<Rank> devices_from(std::uint32_t first, std::uint32_t count) {
  std::vector<Rank> devices;
  for (std::uint32_t i = 0; i < count; ++i)
    devices.emplace_back(first + i);
  return devices;
}

struct Layouts {
  std::vector<ParameterShape> model = reshard_model();
  plans::Cluster cluster = {.devices_per_node = 2 * num_devices,
                            .workers_per_node = 2 * num_devices};
  plans::Layout source, target;
  std::vector<plans::Transfer> plan;
  std::uint64_t target_bytes = 0;

  /// Targets on devices `first`, `first` + 1, ...
  explicit Layouts(std::uint32_t first, Strategy from = {.dp = 2, .tp = 2},
                   Strategy to = {.tp = 4})
    : source(plans::make_layout(model, from, devices_from(0, num_devices),
                                DType::f32)),
      target(plans::make_layout(model, to, devices_from(first, num_devices),
                                DType::f32)),
      plan(plans::move_plan(source, target, cluster)) {
    for (const auto& shard : target.shards)
      target_bytes += shard.size_bytes;
  }
};

/// Sets every float to its index in the whole model, so that parts can be
/// checked.
void visit(const plans::Shard& shard, const std::vector<ParameterShape>& model,
           std::byte* plane,
           const std::function<void(float*, float)>& element) {
  for (const auto& box : shard.boxes) {
    auto* at = reinterpret_cast<float*>(plane + box.offset_bytes);
    for (auto row = box.row0; row < box.row1; ++row)
      for (auto col = box.col0; col < box.col1; ++col)
        element(at++, static_cast<float>((row * model[box.parameter].cols + col
                                          + box.parameter * 7919)
                                         % (1 << 20)));
  }
}

void fill(const plans::Shard& shard, const std::vector<ParameterShape>& model,
          std::byte* plane) {
  visit(shard, model, plane, [](float* at, float value) { *at = value; });
}

void check(const plans::Shard& shard, const std::vector<ParameterShape>& model,
           std::byte* plane) {
  visit(shard, model, plane, [](float* at, float value) {
    if (*at != value)
      throw std::runtime_error("a byte of a move is wrong");
  });
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Two threads copy one block of `bytes` / 2 each; all pages were touched.
class MemoryCopy {
public:
  explicit MemoryCopy(std::uint64_t bytes) : half_(bytes / 2) {
    for (int i = 0; i < 4; ++i) {
      blocks_.emplace_back(half_, PageSharing::by_descriptor);
      std::memset(blocks_.back().data(), i, half_);
    }
  }
  double seconds() {
    const auto start = Clock::now();
    std::thread other(
      [&] { std::memcpy(blocks_[0].data(), blocks_[1].data(), half_); });
    std::memcpy(blocks_[2].data(), blocks_[3].data(), half_);
    other.join();
    return seconds_since(start);
  }

private:
  std::uint64_t half_;
  std::vector<PageBlock> blocks_;
};

/// A device: its plane of the source, of the target, and its part of the move.
struct Device {
  PageBlock from, to;

  Device(const Layouts& layouts, Rank rank, bool is_source, bool is_target) {
    if (is_source) {
      const auto& shard = layouts.source.of(rank);
      from = PageBlock(shard.size_bytes, PageSharing::by_descriptor);
      fill(shard, layouts.model, from.data());
    }
    if (is_target) {
      to = PageBlock(layouts.target.of(rank).size_bytes,
                     PageSharing::by_descriptor);
      std::memset(to.data(), 255, to.size_bytes());
    }
  }
};

struct InsideSeconds {
  std::vector<double> move, copy;
};

/// Runs devices as threads of this process, alternating with a plain copy of as
/// many bytes.
InsideSeconds inside_seconds(const Layouts& layouts, int runs) {
  net::DataPlane plane({.self = WorkerId{0}, .token = "bench"});
  std::vector<Device> devices;
  for (std::uint32_t i = 0; i < num_devices; ++i)
    devices.emplace_back(layouts, Rank{i}, true, true);
  std::vector<models::WeightMove> moves;
  for (std::uint32_t i = 0; i < num_devices; ++i)
    moves.emplace_back(
      plans::transfers_to(layouts.plan, Rank{i}),
      [&](Rank from) {
        const auto& block = devices[from.value].from;
        return models::PlaneSource{
          WorkerId{0}, 0, {block.data(), block.size_bytes()}};
      },
      plane);
  MemoryCopy copy(layouts.target_bytes);
  InsideSeconds seconds;
  for (int run = -1; run < runs; ++run) {
    const auto start = Clock::now();
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < num_devices; ++i)
      threads.emplace_back([&, i] {
        moves[i].run({devices[i].to.data(), devices[i].to.size_bytes()});
      });
    for (auto& thread : threads)
      thread.join();
    const double moved = seconds_since(start), copied = copy.seconds();
    if (run < 0)
      continue;
    seconds.move.push_back(moved);
    seconds.copy.push_back(copied);
  }
  for (std::uint32_t i = 0; i < num_devices; ++i)
    check(layouts.target.of(Rank{i}), layouts.model, devices[i].to.data());
  return seconds;
}

enum class Road { shared, tcp };

/// Runs a device in its own process: exports its plane, receives the others'
/// ports, moves on each request, then checks.
void be_device(const Talk& talk, std::uint32_t rank, std::uint32_t first_target,
               Road road) {
  const Layouts layouts(first_target);
  const bool is_source = rank < num_devices;
  const bool is_target = rank >= first_target;
  Device device(layouts, Rank{rank}, is_source, is_target);
  net::DataPlane plane({.self = WorkerId{rank}, .token = "bench"});
  net::MemoryHandle place;
  if (is_source) {
    plane.export_memory(1, device.from.data(), device.from.size_bytes());
    place = *device.from.place();
    if (road == Road::shared)
      plane.export_memory(net::handle_id(1), &place, sizeof(place));
  }
  talk.say(plane.port());
  for (std::uint32_t i = 0; i < first_target + num_devices; ++i)
    plane.set_peer(WorkerId{i}, "127.0.0.1", talk.hear<std::uint16_t>());
  net::PeerMemory memory[num_devices];
  std::unique_ptr<models::WeightMove> move;
  talk.say('r'); // all peers export before any request
  talk.hear<char>();
  if (is_target)
    move = std::make_unique<models::WeightMove>(
      plans::transfers_to(layouts.plan, Rank{rank}),
      [&](Rank from) {
        models::PlaneSource source{WorkerId{from.value}, 1, {}};
        if (from.value == rank)
          source.bytes = {device.from.data(), device.from.size_bytes()};
        else
          source.bytes = memory[from.value].find(plane, source.worker, 1).bytes;
        return source;
      },
      plane);
  talk.say('r');
  while (talk.hear<char>() == 'm') {
    if (move)
      move->run({device.to.data(), device.to.size_bytes()});
    talk.say('d');
  }
  if (is_target)
    check(layouts.target.of(Rank{rank}), layouts.model, device.to.data());
  talk.say('v');
}

void tell_all(std::vector<std::unique_ptr<ForkedPeer>>& peers, char word) {
  for (auto& peer : peers)
    peer->talk().say(word);
  for (auto& peer : peers)
    peer->talk().hear<char>();
}

std::vector<double> between_seconds(std::uint32_t first_target, Road road,
                                    int runs) {
  std::vector<std::unique_ptr<ForkedPeer>> peers;
  std::vector<std::uint16_t> ports;
  for (std::uint32_t i = 0; i < first_target + num_devices; ++i)
    peers.push_back(std::make_unique<ForkedPeer>(
      [=](const Talk& talk) { be_device(talk, i, first_target, road); }));
  for (auto& peer : peers)
    ports.push_back(peer->talk().hear<std::uint16_t>());
  for (auto& peer : peers) {
    for (const auto port : ports)
      peer->talk().say(port);
    peer->talk().hear<char>();
  }
  tell_all(peers, 'c');
  std::vector<double> seconds;
  for (int run = -1; run < runs; ++run) {
    const auto start = Clock::now();
    tell_all(peers, 'm');
    if (run >= 0)
      seconds.push_back(seconds_since(start));
  }
  tell_all(peers, 'q'); // each checks its plane, or aborts
  return seconds;
}

nlohmann::json rate(const std::vector<double>& seconds, std::uint64_t bytes,
                    double memcpy_s) {
  auto result = summary(seconds);
  const double median = result["median"];
  return {{"s", result},
          {"param_GBs", static_cast<double>(bytes) / median / 1e9},
          {"of_memcpy", memcpy_s / median}};
}

/// Moves from one layout to another, both of all four devices of one process.
nlohmann::json other_layouts(int runs) {
  const Strategy d4{.dp = 4}, d2t2{.dp = 2, .tp = 2}, t4{.tp = 4}, p4{.pp = 4},
    p2t2{.pp = 2, .tp = 2}, z3{.dp = 4, .zero = Zero::z3};
  const std::vector<std::pair<Strategy, Strategy>> pairs{
    {t4, d2t2}, {p2t2, t4}, {t4, p4}, {d2t2, p2t2},
    {d4, t4},   {z3, t4},   {t4, z3}, {z3, d4}};
  auto all = nlohmann::json::array();
  for (const auto& [from, to] : pairs) {
    const Layouts layouts(0, from, to);
    const auto seconds = inside_seconds(layouts, runs);
    const double copied = summary(seconds.copy)["median"];
    auto one = rate(seconds.move, layouts.target_bytes, copied);
    one["from"] = to_string(from);
    one["to"] = to_string(to);
    all.push_back(std::move(one));
  }
  return all;
}

/// Plans a 70B model's move from d4p4t8, where it trains, to d16t8, where it
/// generates.
nlohmann::json planning() {
  ModelShape shape;
  shape.family = "llama";
  shape.vocab_size = 32000;
  shape.hidden_size = 8192;
  shape.num_layers = 80;
  shape.num_heads = 64;
  shape.num_kv_heads = 8;
  shape.head_dim = 128;
  shape.intermediate_size = 28672;
  const auto model = parameters(shape);
  const plans::Cluster cluster{.nodes = 16, .devices_per_node = 8};
  const auto devices = devices_from(0, 128);
  const auto source = plans::make_layout(model, {.dp = 4, .pp = 4, .tp = 8},
                                         devices, DType::bf16);
  const auto target
    = plans::make_layout(model, {.dp = 16, .tp = 8}, devices, DType::bf16);
  std::vector<double> seconds;
  std::size_t transfers = 0;
  for (int run = 0; run < 5; ++run) {
    const auto start = Clock::now();
    transfers = plans::move_plan(source, target, cluster).size();
    seconds.push_back(seconds_since(start));
  }
  return {{"from", "d4p4t8"},
          {"to", "d16t8"},
          {"devices", 128},
          {"transfers", transfers},
          {"s", summary(seconds)}};
}

} // namespace

nlohmann::json bench_move(const Options& options) {
  nlohmann::json document;
  // processes first: they are forked while this one has one thread
  const auto shared_s = between_seconds(0, Road::shared, options.runs);
  const auto tcp_s = between_seconds(0, Road::tcp, options.runs);
  const auto apart_s = between_seconds(num_devices, Road::shared, options.runs);
  const Layouts layouts(0);
  const auto bytes = layouts.target_bytes;
  const auto inside_s = inside_seconds(layouts, options.runs);
  const auto copies = summary(inside_s.copy);
  const double copy_s = copies["median"];
  document["param_bytes"] = bytes;
  document["bytes_that_move"] = plans::moved_bytes(layouts.plan);
  document["memcpy_two_threads"] = copies;
  std::vector<double> rates;
  for (const double seconds : inside_s.move)
    rates.push_back(static_cast<double>(bytes) / seconds / 1e9);
  add_headline(document, "gb_s", rates);
  document["inside_one_process"] = rate(inside_s.move, bytes, copy_s);
  document["processes_shared"] = rate(shared_s, bytes, copy_s);
  document["processes_tcp"] = rate(tcp_s, bytes, copy_s);
  document["processes_shared_other_devices"] = rate(apart_s, bytes, copy_s);
  document["inside_other_layouts"] = other_layouts(options.runs);
  document["planning_70b"] = planning();
  return document;
}

} // namespace troupe::bench
