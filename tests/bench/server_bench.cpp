// The copy of a device's weights into the memory file that a server reads, with
// the sum of each tensor, beside memcpy of as many bytes by as many threads;
// and the same with a reader that copies the file and sums it again, by both
// routes: in memory, and over a TCP connection of this host. All in turns.
#include "config/model/model_shape.hpp"
#include "models/kernels/threads.hpp"
#include "models/parallel/parameters.hpp"
#include "models/servers/sent_weights.hpp"
#include "models/servers/tensor_sum.hpp"
#include "net/transport/byte_offer.hpp"

#include "bench.hpp"
#include "tests/support/net/wire_tap.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe::bench {
namespace {

using models::Parameters;
using models::Plane;
using models::SentWeights;

/// Seconds of each run.
struct RouteSeconds {
  std::vector<double> take, copy, memory, tcp;
};

void copy_all(std::span<const std::byte> from, std::vector<std::byte>& to) {
  constexpr std::int64_t grain = 1 << 20;
  models::parallel_for(0, static_cast<std::int64_t>(from.size()), grain,
                       [&](std::int64_t begin, std::int64_t end) {
                         std::memcpy(to.data() + begin, from.data() + begin,
                                     static_cast<std::size_t>(end - begin));
                       });
}

/// Reads an offer as a server does.
void read_all(const net::ByteOffer& offer, std::vector<std::byte>& to) {
  const auto socket = test::connect_to(offer.port());
  const auto greeting = offer.token() + "00000000";
  if (::send(socket.get(), greeting.data(), greeting.size(), 0) < 0)
    throw std::runtime_error("the offer takes no token");
  for (std::size_t got = 0; got < to.size();) {
    const auto came = ::recv(socket.get(), to.data() + got, to.size() - got, 0);
    if (came <= 0)
      throw std::runtime_error("the offer ended too early");
    got += static_cast<std::size_t>(came);
  }
}

/// Sums a copy of the file by all threads, and compares.
void check_sums(std::span<const models::SentTensor> tensors,
                std::span<const std::byte> file) {
  models::parallel_for(
    0, static_cast<std::int64_t>(tensors.size()), 1,
    [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin);
           i < static_cast<std::size_t>(end); ++i) {
        const auto next = i + 1 < tensors.size() ? tensors[i + 1].offset
                                                 : std::uint64_t{file.size()};
        const auto at = tensors[i].offset;
        if (models::tensor_sum(file.subspan(at, next - at)) != tensors[i].sum)
          throw std::runtime_error(tensors[i].name + ": its sum differs");
      }
    });
}

RouteSeconds route_seconds(const Parameters& parameters,
                           const Options& options) {
  const auto plane = std::as_bytes(parameters.plane(Plane::weight));
  std::vector<std::byte> copied(plane.size());
  SentWeights weights;
  weights.take(parameters);
  std::vector<std::byte> read(weights.bytes().size());
  RouteSeconds seconds;
  for (int run = -1; run < options.runs; ++run) { // the first faults pages in
    const auto take = seconds_of(options, [&] { weights.take(parameters); });
    const auto copy = seconds_of(options, [&] { copy_all(plane, copied); });
    const auto memory = seconds_of(options, [&] {
      weights.take(parameters);
      copy_all(weights.bytes(), read);
      check_sums(weights.tensors(), read);
    });
    const auto tcp = seconds_of(options, [&] {
      weights.take(parameters);
      const net::ByteOffer offer({.who = "bench", .where = {}},
                                 weights.bytes());
      read_all(offer, read);
      check_sums(weights.tensors(), read);
    });
    if (run < 0)
      continue;
    seconds.take.push_back(take);
    seconds.copy.push_back(copy);
    seconds.memory.push_back(memory);
    seconds.tcp.push_back(tcp);
  }
  return seconds;
}

} // namespace

nlohmann::json bench_server(const Options& options) {
  Parameters parameters(troupe::parameters(shape_of(read_card(options))),
                        /*trainable=*/false);
  std::ranges::fill(parameters.plane(Plane::weight), 0.5F);
  const auto seconds = route_seconds(parameters, options);
  const auto bytes
    = static_cast<double>(parameters.plane(Plane::weight).size_bytes());
  const auto rates = [&](const std::vector<double>& of) {
    std::vector<double> all;
    for (const double one : of)
      all.push_back(bytes / one / 1e9);
    return all;
  };
  nlohmann::json document;
  add_headline(document, "gb_s", rates(seconds.take));
  document["memory_route_gb_s"] = summary(rates(seconds.memory));
  document["tcp_route_gb_s"] = summary(rates(seconds.tcp));
  document["take_s"] = summary(seconds.take);
  document["memcpy_s"] = summary(seconds.copy);
  const double take_s = document["take_s"]["median"];
  const double copy_s = document["memcpy_s"]["median"];
  document["of_memcpy"] = copy_s / take_s;
  document["bytes"] = bytes;
  return document;
}

} // namespace troupe::bench
