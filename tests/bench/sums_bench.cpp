// All-reduce over devices, `--threads` of them in this process, as members of a
// dp group have it: NCCL where `--device gpu` gives each member a GPU of its
// own, else the host's transport. Of every run the time of the slowest member.
// `bus_gb_s` is nccl-tests' busbw: 2 (n - 1) / n of the bytes a second.
#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/backend.hpp"
#include "net/base/gpus.hpp"
#include "net/collectives/host_collectives.hpp"
#include "net/collectives/nccl_collectives.hpp"
#include "net/collectives/staged_collectives.hpp"

#include "bench.hpp"
#include "random_engine.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <thread>

namespace troupe::bench {
namespace {

/// A device of the group, on a thread of its own.
class SummingMember {
public:
  SummingMember(const Options& options, std::uint32_t rank,
                net::GroupRegistry& registry)
    : options_(options),
      backend_(backend_of(options, rank)),
      group_(group_of(options, rank, registry)),
      block_(backend_.memory()) {}

  /// Returns the seconds of each run; checks the sum of the first.
  std::vector<double> run() {
    backend_.enter();
    const std::int64_t count = std::int64_t{options_.sizes.mib} << 18;
    float* data = block_.reserve(count);
    std::vector<double> seconds;
    for (int i = -1; i < options_.runs; ++i) {
      backend_.fill(data, count, 1.0F);
      backend_.wait();
      group_->barrier("bench");
      const double once = seconds_of(options_, [&] {
        group_->all_reduce_sum(data, static_cast<std::size_t>(count),
                               DType::f32, "bench");
      });
      check(data);
      check(data + count - 1);
      if (i >= 0) // NCCL connects in the first
        seconds.push_back(once);
    }
    group_->barrier("leave");
    return seconds;
  }

private:
  static std::shared_ptr<net::Collectives>
  group_of(const Options& options, std::uint32_t rank,
           net::GroupRegistry& registry) {
    net::GroupSpec spec{.name = "sums", .index = rank};
    spec.members.resize(static_cast<std::size_t>(options.threads));
    auto host = net::make_host_collectives(spec, registry);
    if (options.device != "gpu")
      return host;
    const net::GpuReport gpus = net::find_gpus();
    const std::size_t gpu = rank % gpus.names.size();
    return net::make_nccl_collectives(
      {.host = net::make_staged_collectives(
         std::move(host), *backend_of(options, rank).memory()),
       .device = static_cast<int>(gpu),
       .progress_deadline = spec.progress_deadline,
       .gpu = gpus.ids[gpu]});
  }
  void check(const float* number) const {
    if (*backend_.read(number, 1).floats()
        != static_cast<float>(options_.threads))
      throw std::runtime_error("a sum is wrong");
  }

  const Options& options_;
  models::Backend& backend_;
  std::shared_ptr<net::Collectives> group_;
  models::AlignedFloats block_;
};

} // namespace

nlohmann::json bench_sums(const Options& options) {
  const auto ranks = static_cast<std::size_t>(options.threads);
  net::GroupRegistry registry;
  std::vector<std::vector<double>> seconds(ranks);
  std::vector<std::exception_ptr> failures(ranks);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        seconds[rank]
          = SummingMember(options, static_cast<std::uint32_t>(rank), registry)
              .run();
      } catch (const std::exception& error) {
        failures[rank] = std::current_exception();
        registry.abort_all(
          {.code = Errc::aborted, .who = "sums", .what = error.what()});
      }
    });
  for (auto& thread : threads)
    thread.join();
  for (const auto& failure : failures)
    if (failure)
      std::rethrow_exception(failure);
  const double gb = options.sizes.mib * 1024.0 * 1024.0 * 1e-9;
  const double sent
    = 2.0 * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  std::vector<double> rates;
  for (std::size_t i = 0; i < seconds[0].size(); ++i) {
    double slowest = 0;
    for (const auto& member : seconds)
      slowest = std::max(slowest, member[i]);
    rates.push_back(sent * gb / slowest);
  }
  nlohmann::json document{{"ranks", ranks}, {"mib", options.sizes.mib}};
  add_headline(document, "bus_gb_s", rates);
  return document;
}

} // namespace troupe::bench
