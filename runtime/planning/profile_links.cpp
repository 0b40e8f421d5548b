#include "runtime/planning/profile_links.hpp"

#include "net/collectives/channel.hpp"
#include "plans/cost/profile_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace troupe::runtime {

namespace {

constexpr std::size_t small_bytes = 4 << 10;
constexpr double least_large_bytes = 1 << 20;
constexpr double most_large_bytes = 64 << 20;
/// Messages per round, each way.
constexpr int exchanges = 8;
constexpr int stage_operations = 25'000; ///< some 100 us

struct LinkSizes {
  std::size_t large = 0;
  std::string words = {}; ///< both sizes as text, for sources

  explicit LinkSizes(double model_bytes)
    : large(static_cast<std::size_t>(
              std::clamp(model_bytes, least_large_bytes, most_large_bytes))
            / 64 * 64),
      words(fmt::format("{} and {} KiB", small_bytes >> 10, large >> 10)) {}
};

using Buffers = std::vector<std::vector<float>>;

/// Work of `device` with a buffer of its own.
using LinkWork
  = std::function<void(std::uint32_t device, std::vector<float>& buffer)>;

plans::WorkLine measure_work(ProfilePool& pool, std::uint32_t devices,
                             const LinkSizes& sizes, const LinkWork& work) {
  std::vector<plans::TimedWork> found;
  for (const auto bytes : {small_bytes, sizes.large}) {
    Buffers buffers(devices, std::vector<float>(bytes / sizeof(float), 1e-30F));
    const auto seconds
      = pool.seconds(devices, [&](std::uint32_t i) { work(i, buffers[i]); });
    found.push_back({static_cast<double>(bytes), seconds});
  }
  return plans::fit_work(found);
}

/// Computes for as long as a small pipeline stage.
float backend(float number) {
  for (int i = 0; i < stage_operations; ++i)
    number = number * 0.999F + 0.001F;
  return number;
}

/// Measures what a message between neighbours costs if both compute while
/// messages are in transit, as stages of a pipeline do: half of what sending
/// and receiving one add to computing.
plans::WorkLine measure_sends(ProfilePool& pool, std::uint32_t devices) {
  const auto channels = pool.channels();
  std::vector<float> numbers(devices, 2.0F);
  const auto alone_s = pool.seconds(devices, [&](std::uint32_t device) {
    for (int i = 0; i < exchanges; ++i)
      numbers[device] = backend(numbers[device]);
  });
  auto line = measure_work(
    pool, devices, LinkSizes(0), [&](std::uint32_t device, auto& buffer) {
      const auto bytes = buffer.size() * sizeof(float);
      for (int i = 0; i < exchanges; ++i) {
        channels[device]->send(buffer.data(), bytes, "profile");
        buffer.front() = backend(buffer.front());
        channels[device]->receive(buffer.data(), bytes, "profile");
      }
    });
  line.fixed_s = std::max(0.0, line.fixed_s - alone_s) / (2 * exchanges);
  return line;
}

/// Measures sums of two devices: each byte crosses once each way, as the cost
/// model counts it.
plans::WorkLine measure_sums(ProfilePool& pool, std::uint32_t devices,
                             const LinkSizes& sizes) {
  const auto groups = pool.groups_of(2);
  return measure_work(pool, devices, sizes, [&](std::uint32_t i, auto& buffer) {
    groups[i]->all_reduce_sum(buffer.data(), buffer.size(), DType::f32,
                              "profile");
  });
}

/// Measures gathers: a device receives half of the buffer.
plans::WorkLine measure_gathers(ProfilePool& pool, std::uint32_t devices,
                                const LinkSizes& sizes) {
  const auto groups = pool.groups_of(2);
  auto line
    = measure_work(pool, devices, sizes, [&](std::uint32_t i, auto& buffer) {
        const auto half = buffer.size() / 2;
        groups[i]->all_gather(buffer.data() + groups[i]->rank() * half,
                              buffer.data(), half, DType::f32, "profile");
      });
  line.rate /= 2;
  return line;
}

plans::WorkLine measure_copies(ProfilePool& pool, const LinkSizes& sizes) {
  Buffers targets(pool.num_devices(),
                  std::vector<float>(sizes.large / sizeof(float)));
  return measure_work(pool, pool.num_devices(), sizes,
                      [&](std::uint32_t i, auto& buffer) {
                        std::memcpy(targets[i].data(), buffer.data(),
                                    buffer.size() * sizeof(float));
                      });
}

} // namespace

void measure_links(ProfilePool& pool, double model_bytes,
                   plans::Hardware& hardware) {
  const LinkSizes sizes(model_bytes);
  const auto copies = measure_copies(pool, sizes);
  const auto copied
    = fmt::format("measured: memcpy of {} on {} devices at once", sizes.words,
                  pool.num_devices());
  // a copy reads and writes
  set_number(hardware, "device.mem_Bps", 2 * copies.rate, copied);
  set_number(hardware, "device.cache_Bps",
             plans::host_cache_share * hardware.mem_Bps,
             fmt::format("assumed: {} of the measured mem_Bps",
                         plans::host_cache_share));
  set_number(hardware, "links.host_Bps", copies.rate, copied);
  const auto devices = pool.num_devices() / 2 * 2;
  if (devices == 0)
    return; // links of a single device keep their assumed numbers
  const auto by_pairs = [&](const char* what, const LinkSizes& of) {
    return fmt::format("fitted to {} of {}, {} pairs at once", what, of.words,
                       devices / 2);
  };
  set_number(hardware, "links.intra_lat_s",
             measure_sends(pool, devices).fixed_s,
             by_pairs("messages beside work", LinkSizes(0)));
  set_number(hardware, "links.intra_Bps",
             measure_sums(pool, devices, sizes).rate,
             by_pairs("all-reduces", sizes));
  set_number(hardware, "links.zero_Bps",
             measure_gathers(pool, devices, sizes).rate,
             by_pairs("all-gathers", sizes));
}

} // namespace troupe::runtime
