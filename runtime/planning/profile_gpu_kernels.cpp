#include "runtime/planning/profile_gpu_kernels.hpp"

#include "config/base/clock.hpp"
#include "models/engine/random_weights.hpp"
#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/backend.hpp"
#include "models/kernels/typed_block.hpp"
#include "plans/cost/profile_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

namespace troupe::runtime {

namespace {

constexpr std::int64_t tiny_floats = 256; ///< of a kernel that only launches
constexpr int launches_at_once = 200;     ///< fewer than a GPU's queue takes
constexpr int timed_rounds = 10;
constexpr std::int64_t product_rows = 4096;
constexpr std::int64_t most_product_columns = 16384;

/// Returns the least seconds of a call by each device's thread, of the slowest
/// device.
template <class Timed>
double slowest_least_s(ProfilePool& pool, const Timed& timed) {
  std::vector<double> least(pool.num_devices(),
                            std::numeric_limits<double>::infinity());
  pool.together(pool.num_devices(), [&](std::uint32_t i) {
    for (int round = 0; round < timed_rounds; ++round)
      least[i] = std::min(least[i], timed(pool.backend(i)));
  });
  return *std::ranges::max_element(least);
}

void launch_many(models::Backend& backend, float* tiny, int launches) {
  for (int i = 0; i < launches; ++i)
    backend.fill(tiny, tiny_floats, 1.0F);
}

/// Returns the seconds in which the host launches a kernel.
double launch_s(models::Backend& backend) {
  models::AlignedFloats tiny(backend.memory());
  tiny.reserve(tiny_floats);
  backend.wait();
  const Stopwatch watch;
  launch_many(backend, tiny.data(), launches_at_once);
  const auto seconds = watch.seconds() / launches_at_once;
  backend.wait();
  return seconds;
}

/// Returns those of a copy of some bytes that the host waits for.
double copy_s(models::Backend& backend) {
  models::AlignedFloats tiny(backend.memory());
  const float* const data = tiny.reserve(tiny_floats);
  backend.wait();
  const Stopwatch watch;
  float number = 0;
  backend.memory()->read(data, &number, sizeof number);
  return watch.seconds();
}

/// Returns the seconds from one tiny kernel of a graph to the next; 0: no
/// graphs.
double graph_gap_s(models::Backend& backend) {
  const auto recorder = backend.recorder();
  if (!recorder)
    return 0;
  models::AlignedFloats tiny(backend.memory());
  float* const data = tiny.reserve(tiny_floats);
  launch_many(backend, data, 1);
  std::vector<plans::TimedWork> found;
  for (const int launches : {launches_at_once / 10, launches_at_once}) {
    const auto graph
      = recorder->record([&] { launch_many(backend, data, launches); });
    if (!graph)
      return 0;
    graph->run(); // the first one loads it
    backend.wait();
    const Stopwatch watch;
    graph->run();
    backend.wait();
    found.push_back({static_cast<double>(launches), watch.seconds()});
  }
  const auto rate = plans::fit_work(found).rate;
  return rate > 0 ? 1 / rate : 0;
}

} // namespace

void measure_gpu_launches(ProfilePool& pool, plans::Hardware& hardware) {
  const auto of = [&](const char* what) {
    return fmt::format("measured: {}, the slowest of {} devices at once", what,
                       pool.num_devices());
  };
  set_number(hardware, "host.launch_s", slowest_least_s(pool, launch_s),
             of("kernels that fill 1 KiB, launched"));
  set_number(hardware, "host.copy_s", slowest_least_s(pool, copy_s),
             of("4 bytes read and waited for"));
  if (const auto gap_s = slowest_least_s(pool, graph_gap_s); gap_s > 0)
    set_number(hardware, "host.graph_gap_s", gap_s,
               of("kernels that fill 1 KiB, in a graph"));
}

namespace {

/// Operands and result of a product on one device.
struct GpuProduct {
  GpuProduct(models::Backend& of, const models::GemmShape& wanted,
             DType operands)
    : backend(of),
      shape(wanted),
      options{.operands = operands} {
    models::RandomNumbers numbers(backend, shape.m * shape.k);
    numbers.fill(a.reserve(shape.m * shape.k), shape.m * shape.k);
    numbers.fill(b.reserve(shape.n * shape.k), shape.n * shape.k);
    c.reserve(shape.m * shape.n);
    backend.wait();
  }
  /// Multiplies as with a weight [n, k].
  void run() {
    backend.gemm(shape, {a.data(), shape.k}, {b.data(), 1, shape.k},
                 {c.data(), shape.n}, options);
    backend.wait();
  }

  models::Backend& backend;
  models::GemmShape shape;
  models::GemmOptions options;
  models::TypedBlock a{backend.memory(), backend.storage(options.operands)};
  models::TypedBlock b{backend.memory(), backend.storage(options.operands)};
  models::TypedBlock c{backend.memory(), backend.storage(options.operands)};
};

} // namespace

void measure_gpu_products(ProfilePool& pool, const ModelShape& model,
                          DType operands, plans::Hardware& hardware) {
  const models::GemmShape shape{
    .m = product_rows,
    .n = std::min<std::int64_t>(model.vocab_size, most_product_columns),
    .k = model.hidden_size};
  std::vector<std::unique_ptr<GpuProduct>> products(pool.num_devices());
  pool.together(pool.num_devices(), [&](std::uint32_t i) {
    products[i]
      = std::make_unique<GpuProduct>(pool.backend(i), shape, operands);
  });
  const auto seconds = pool.seconds(
    pool.num_devices(), [&](std::uint32_t i) { products[i]->run(); });
  const auto flops = 2.0 * static_cast<double>(shape.m)
                     * static_cast<double>(shape.n)
                     * static_cast<double>(shape.k);
  const auto attention = hardware.attn_flops / hardware.gemm_flops;
  set_number(
    hardware, "device.gemm_flops", flops / seconds,
    fmt::format("measured: products of {} rows, {} to {} columns, on {} "
                "devices at once",
                shape.m, shape.k, shape.n, pool.num_devices()));
  set_number(
    hardware, "device.attn_flops", attention * hardware.gemm_flops,
    fmt::format("assumed: {:.2f} of the measured gemm_flops", attention));
}

} // namespace troupe::runtime
