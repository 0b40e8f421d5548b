// The weights of a card from t2 to p2 over two devices whose planes are in the
// memory of one, as two devices that share a GPU have it, moved within that
// memory as actors/worker/weight_moves.cpp does; beside the device's own copy
// of as many bytes. A sample of every box of the target is compared with the
// source.
#include "config/model/model_shape.hpp"
#include "config/settings/settings_types.hpp"
#include "models/kernels/backend.hpp"
#include "models/parallel/weight_move.hpp"
#include "net/base/page_block.hpp"
#include "net/data_plane/data_plane.hpp"

#include "bench.hpp"
#include "random_engine.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <thread>

namespace troupe::bench {
namespace {

constexpr std::uint32_t sharing_devices = 2;
/// Rows of a box that are compared, from its first on.
constexpr std::int64_t compared_rows = 5;

net::PageBlock block_of(models::Backend& backend, std::uint64_t bytes) {
  return backend.memory() != nullptr
           ? net::PageBlock(bytes, *backend.memory())
           : net::PageBlock(bytes, net::PageSharing::none);
}

float* floats_of(const net::PageBlock& block) {
  return reinterpret_cast<float*>(block.data());
}

std::int64_t num_floats(const net::PageBlock& block) {
  return static_cast<std::int64_t>(block.size_bytes() / sizeof(float));
}

class SharedDevice {
public:
  SharedDevice(const ModelShape& shape, models::Backend& backend)
    : backend_(backend),
      source_(plans::make_layout(parameters(shape), {.tp = 2}, devices(),
                                 DType::f32)),
      target_(plans::make_layout(parameters(shape), {.pp = 2}, devices(),
                                 DType::f32)),
      plan_(plans::move_plan(source_, target_, {.devices_per_node = 2})),
      data_plane_({.self = WorkerId{0}, .token = "bench"}) {
    RandomBlock random(backend);
    for (const Rank device : devices()) {
      from_.push_back(block_of(backend, source_.of(device).size_bytes));
      to_.push_back(block_of(backend, target_.of(device).size_bytes));
      random.write(floats_of(from_.back()), num_floats(from_.back()));
    }
    backend.wait();
    for (const Rank device : devices())
      moves_.emplace_back(
        plans::transfers_to(plan_, device),
        [&](Rank from) {
          const auto& block = from_[from.value];
          return models::PlaneSource{.worker = WorkerId{0},
                                     .bytes
                                     = {block.data(), block.size_bytes()},
                                     .memory = backend_.memory()};
        },
        data_plane_);
  }

  void move() {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < moves_.size(); ++i)
      threads.emplace_back([&, i] {
        backend_.enter();
        const std::span target(to_[i].data(), to_[i].size_bytes());
        if (const auto* memory = backend_.memory())
          moves_[i].run(*memory, target,
                        ClusterSettings{}.move_staging_bytes());
        else
          moves_[i].run(target);
        backend_.wait();
      });
    for (auto& thread : threads)
      thread.join();
  }
  void copy() {
    for (std::size_t i = 0; i < to_.size(); ++i)
      backend_.copy(floats_of(from_[i]), floats_of(to_[i]),
                    std::min(num_floats(from_[i]), num_floats(to_[i])));
    backend_.wait();
  }
  void check() const {
    for (const auto& shard : target_.shards)
      for (const auto& box : shard.boxes)
        for (std::int64_t i = 0; i < compared_rows; ++i)
          compare(shard, box, box.row0 + (box.row1 - 1 - box.row0) * i / 4);
  }
  double target_bytes() const {
    double sum = 0;
    for (const auto& block : to_)
      sum += static_cast<double>(block.size_bytes());
    return sum;
  }

private:
  static std::vector<Rank> devices() {
    std::vector<Rank> all;
    for (std::uint32_t i = 0; i < sharing_devices; ++i)
      all.emplace_back(i);
    return all;
  }
  float at(const net::PageBlock& block, const plans::Box& box, std::int64_t row,
           std::int64_t col) const {
    const auto index = static_cast<std::int64_t>(box.offset_bytes)
                         / static_cast<std::int64_t>(sizeof(float))
                       + (row - box.row0) * (box.col1 - box.col0) + col
                       - box.col0;
    return *backend_.read(floats_of(block) + index, 1).floats();
  }
  void compare(const plans::Shard& shard, const plans::Box& box,
               std::int64_t row) const {
    for (const std::int64_t col : {box.col0, box.col1 - 1})
      if (!is_in_source(box.parameter, row, col,
                        at(to_[shard.device.value], box, row, col)))
        throw std::runtime_error("a byte of a move is wrong");
  }
  /// Norms are on both devices, with random numbers of each.
  bool is_in_source(std::uint32_t parameter, std::int64_t row, std::int64_t col,
                    float value) const {
    for (const auto& shard : source_.shards)
      for (const auto& box : shard.boxes)
        if (box.parameter == parameter && row >= box.row0 && row < box.row1
            && col >= box.col0 && col < box.col1
            && at(from_[shard.device.value], box, row, col) == value)
          return true;
    return false;
  }

  models::Backend& backend_;
  plans::Layout source_, target_;
  std::vector<plans::Transfer> plan_;
  net::DataPlane data_plane_;
  std::vector<net::PageBlock> from_, to_;
  std::vector<models::WeightMove> moves_;
};

} // namespace

nlohmann::json bench_device_move(const Options& options) {
  const ModelShape shape = shape_of(read_card(options), options);
  models::Backend& backend = backend_of(options);
  backend.enter();
  SharedDevice device(shape, backend);
  std::vector<double> copied, of_copy, rates;
  for (int run = -1; run < options.runs; ++run) {
    const double copy_s = seconds_of(options, [&] { device.copy(); });
    const double move_s = seconds_of(options, [&] { device.move(); });
    if (run < 0)
      continue;
    copied.push_back(1e-9 * device.target_bytes() / copy_s);
    rates.push_back(1e-9 * device.target_bytes() / move_s);
    of_copy.push_back(copy_s / move_s);
  }
  device.check();
  nlohmann::json document{{"from", "t2"},
                          {"to", "p2"},
                          {"layers", shape.num_layers},
                          {"bytes", device.target_bytes()},
                          {"copy_gb_s", summary(copied)},
                          {"move_gb_s", summary(rates)}};
  add_headline(document, "of_copy", of_copy);
  return document;
}

} // namespace troupe::bench
