// Memory of the device that the command line names: GB/s of its own fills and
// copies, and of copies from the host and to it; and whether the host finds the
// bytes that it gave. `gb_s` counts what a copy reads and what it writes.
#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/backend.hpp"
#include "plans/cost/hardware.hpp"

#include "bench.hpp"
#include "prediction.hpp"
#include "random_engine.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace troupe::bench {
namespace {

class DeviceBlocks {
public:
  DeviceBlocks(models::Backend& backend, std::int64_t count)
    : backend_(backend),
      count_(count),
      host_(static_cast<std::size_t>(count)),
      from_(backend.memory()),
      to_(backend.memory()) {
    from_.reserve(count);
    to_.reserve(count);
    for (std::size_t i = 0; i < host_.size(); ++i)
      host_[i] = static_cast<float>(i % (1 << 20));
  }

  void fill() {
    backend_.fill(to_.data(), count_, 1.0F);
    backend_.wait();
  }
  void write() {
    backend_.write(host_.data(), from_.data(), bytes());
    backend_.wait();
  }
  void copy() {
    backend_.copy(from_.data(), to_.data(), count_);
    backend_.wait();
  }
  void read() {
    if (backend_.memory() == nullptr)
      std::memcpy(host_.data(), to_.data(), bytes());
    else
      backend_.memory()->read(to_.data(), host_.data(), bytes());
  }
  void check() const {
    for (std::size_t i = 0; i < host_.size(); ++i)
      if (host_[i] != static_cast<float>(i % (1 << 20)))
        throw std::runtime_error("float " + std::to_string(i)
                                 + " of the device's memory is wrong");
  }
  std::size_t bytes() const {
    return static_cast<std::size_t>(count_) * sizeof(float);
  }

private:
  models::Backend& backend_;
  std::int64_t count_;
  std::vector<float> host_;
  models::AlignedFloats from_, to_;
};

} // namespace

nlohmann::json bench_memory(const Options& options) {
  models::Backend& backend = backend_of(options);
  backend.enter();
  DeviceBlocks blocks(backend, std::int64_t{options.sizes.mib} << 18);
  const auto gb = 1e-9 * static_cast<double>(blocks.bytes());
  std::vector<double> fill, write, copy, read;
  for (int run = -1; run < options.runs; ++run) {
    const auto rate = [&](std::vector<double>& rates, auto part, double moved) {
      const double seconds = seconds_of(options, [&] { (blocks.*part)(); });
      if (run >= 0) // the first touches pages
        rates.push_back(moved / seconds);
    };
    rate(fill, &DeviceBlocks::fill, gb);
    rate(write, &DeviceBlocks::write, gb);
    rate(copy, &DeviceBlocks::copy, 2 * gb);
    rate(read, &DeviceBlocks::read, gb);
    blocks.check();
  }
  nlohmann::json document{{"mib", options.sizes.mib},
                          {"fill_gb_s", summary(fill)},
                          {"host_writes_gb_s", summary(write)},
                          {"host_reads_gb_s", summary(read)}};
  add_headline(document, "gb_s", copy);
  if (const KnownGpu* gpu = known_gpu(options))
    document["predicted"] = 1e-9 * plans::load_hardware(gpu->hardware).mem_Bps;
  return document;
}

} // namespace troupe::bench
