// The copy of a device's weights into the memory file that a server reads, with
// the SHA-256 of each tensor, beside memcpy of as many bytes by as many threads
// and beside the sums alone, in turns.
#include "config/model/model_shape.hpp"
#include "models/kernels/threads.hpp"
#include "models/parallel/parameters.hpp"
#include "models/servers/sent_weights.hpp"
#include "net/base/sha256.hpp"

#include "bench.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace troupe::bench {
namespace {

using models::Parameters;
using models::Plane;
using models::SentWeights;

/// Seconds of each run.
struct TakeSeconds {
  std::vector<double> take, copy, sums;
};

void copy_all(std::span<const std::byte> from, std::vector<std::byte>& to) {
  constexpr std::int64_t grain = 1 << 20;
  models::parallel_for(0, static_cast<std::int64_t>(from.size()), grain,
                       [&](std::int64_t begin, std::int64_t end) {
                         std::memcpy(to.data() + begin, from.data() + begin,
                                     static_cast<std::size_t>(end - begin));
                       });
}

TakeSeconds take_seconds(const Parameters& parameters, const Options& options) {
  const auto plane = std::as_bytes(parameters.plane(Plane::weight));
  std::vector<std::byte> copied(plane.size());
  SentWeights weights;
  TakeSeconds seconds;
  for (int run = -1; run < options.runs; ++run) { // the first faults pages in
    const auto take = seconds_of(options, [&] { weights.take(parameters); });
    const auto copy = seconds_of(options, [&] { copy_all(plane, copied); });
    std::string digest;
    const auto sums
      = seconds_of(options, [&] { digest = net::sha256_hex(copied); });
    if (run < 0 || digest.empty())
      continue;
    seconds.take.push_back(take);
    seconds.copy.push_back(copy);
    seconds.sums.push_back(sums);
  }
  return seconds;
}

} // namespace

nlohmann::json bench_server(const Options& options) {
  Parameters parameters(troupe::parameters(shape_of(read_card(options))),
                        /*trainable=*/false);
  std::ranges::fill(parameters.plane(Plane::weight), 0.5F);
  const auto seconds = take_seconds(parameters, options);
  const auto bytes
    = static_cast<double>(parameters.plane(Plane::weight).size_bytes());
  std::vector<double> rates;
  for (const double take : seconds.take)
    rates.push_back(bytes / take / 1e9);
  nlohmann::json document;
  add_headline(document, "gb_s", rates);
  document["take_s"] = summary(seconds.take);
  document["memcpy_s"] = summary(seconds.copy);
  document["sha256_of_one_thread_s"] = summary(seconds.sums);
  const double take_s = document["take_s"]["median"];
  const double copy_s = document["memcpy_s"]["median"];
  document["of_memcpy"] = copy_s / take_s;
  document["bytes"] = bytes;
  return document;
}

} // namespace troupe::bench
