// Rate of 64 MiB tensors between two processes over loopback: a plain socket
// test, pull_memory and pull_rows in clear and over TLS, all into reused
// buffers, rounds of the five in turn. One JSON line; the ratios are to the
// plain socket.
#include "net/data_plane/data_plane.hpp"

#include "tests/bench/bench_support.hpp"
#include <arpa/inet.h>
#include <netinet/tcp.h>

#include <cstdio>
#include <future>

namespace {

using namespace troupe;
using namespace troupe::net;
using bench::ForkedPeer;
using bench::Talk;

constexpr std::size_t kTensorBytes = 64 << 20;
constexpr int kWarmRounds = 3, kRounds = 15;

/// The certificate of both processes, made before the fork.
const std::string& certificate() {
  static const std::string made = make_run_certificate();
  return made;
}

DataPlaneOptions bench_options(std::uint32_t self, bool encrypted) {
  DataPlaneOptions options;
  options.self = WorkerId(self);
  options.token = "bench";
  if (encrypted)
    options.tls = std::make_shared<TlsContext>(certificate());
  return options;
}

/// Accepts one connection; sends a tensor for each byte that comes.
void serve_plain(int listener, std::vector<std::byte>& tensor) {
  const int socket = ::accept(listener, nullptr, nullptr);
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  for (char request; ::recv(socket, &request, 1, 0) == 1;)
    for (std::size_t sent = 0; sent < tensor.size();) {
      const ssize_t n = ::send(socket, tensor.data() + sent,
                               tensor.size() - sent, MSG_NOSIGNAL);
      if (n <= 0)
        return;
      sent += static_cast<std::size_t>(n);
    }
}

void serve(const Talk& talk) {
  std::vector<std::byte> tensor(kTensorBytes, std::byte{1});
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ::bind(listener, reinterpret_cast<sockaddr*>(&address), size);
  ::listen(listener, 1);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  talk.say(ntohs(address.sin_port));
  Stash stash;
  stash.put(StepId(0), Rows({SampleId(0)},
                            {make_column("tokens", DType::i32,
                                         {kTensorBytes / 4}, tensor.data())}));
  DataPlane plane(bench_options(1, false)), over_tls(bench_options(1, true));
  for (DataPlane* each : {&plane, &over_tls}) {
    each->serve_rows(stash);
    each->export_memory(1, tensor.data(), tensor.size());
    talk.say(each->port());
  }
  serve_plain(listener, tensor);
}

int connect_plain(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)))
    std::abort();
  return socket;
}

void pull_plain(int socket, std::vector<std::byte>& into) {
  ::send(socket, "x", 1, MSG_NOSIGNAL);
  for (std::size_t got = 0; got < into.size();) {
    const ssize_t n = ::recv(socket, into.data() + got, into.size() - got, 0);
    if (n <= 0)
      std::abort();
    got += static_cast<std::size_t>(n);
  }
}

void pull_memory(DataPlane& plane, std::vector<std::byte>& into) {
  std::promise<bool> done;
  plane.pull_memory(
    WorkerId(1), 1, 0, into,
    [&](std::optional<Failure> failure) { done.set_value(!failure); });
  if (!done.get_future().get())
    std::abort();
}

void pull_rows(DataPlane& plane) {
  std::promise<bool> done;
  plane.pull_rows(WorkerId(1), StepId(0), {"tokens"}, {SampleId(0)},
                  [&](const RowsResult& result) {
                    done.set_value(std::holds_alternative<Rows>(result));
                  });
  if (!done.get_future().get())
    std::abort();
}

} // namespace

int main() {
  certificate();
  ForkedPeer peer(serve);
  const auto plain_port = peer.talk().hear<std::uint16_t>();
  DataPlane plane(bench_options(0, false)), over_tls(bench_options(0, true));
  for (DataPlane* each : {&plane, &over_tls})
    each->set_peer(WorkerId(1), "127.0.0.1", peer.talk().hear<std::uint16_t>());
  const int socket = connect_plain(plain_port);
  std::vector<std::byte> into(kTensorBytes);
  std::vector<double> plain, memory, rows, tls_memory, tls_rows;
  for (int round = -kWarmRounds; round < kRounds; ++round) {
    const double a = bench::seconds_of([&] { pull_plain(socket, into); });
    const double b = bench::seconds_of([&] { pull_memory(plane, into); });
    const double c = bench::seconds_of([&] { pull_rows(plane); });
    const double d = bench::seconds_of([&] { pull_memory(over_tls, into); });
    const double e = bench::seconds_of([&] { pull_rows(over_tls); });
    if (round < 0)
      continue;
    plain.push_back(a);
    memory.push_back(b);
    rows.push_back(c);
    tls_memory.push_back(d);
    tls_rows.push_back(e);
  }
  const auto rate = [](const std::vector<double>& seconds) {
    return kTensorBytes / bench::median(seconds) / 1e9;
  };
  std::printf(
    "{\"bench\": \"data_plane\", \"tensor_mib\": 64, \"rounds\": %d, "
    "\"plain_socket_gb_per_s\": %.3f, \"pull_memory_gb_per_s\": %.3f, "
    "\"pull_rows_gb_per_s\": %.3f, \"pull_memory_ratio\": %.3f, "
    "\"pull_rows_ratio\": %.3f, \"tls_pull_memory_gb_per_s\": %.3f, "
    "\"tls_pull_rows_gb_per_s\": %.3f}\n",
    kRounds, rate(plain), rate(memory), rate(rows), rate(memory) / rate(plain),
    rate(rows) / rate(plain), rate(tls_memory), rate(tls_rows));
}
