#include "net/child_programs/http_client.hpp"

#include "config/base/error.hpp"
#include "net/base/defaults.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <deque>
#include <exception>
#include <iterator>

namespace troupe::net {

namespace {

namespace asio = boost::asio;

using Hosts = asio::ip::tcp::resolver::results_type;

/// The requests of one call, and the connections that carry them: each ends
/// when no request waits, since a server may close one that is idle.
class HttpRound {
public:
  HttpRound(const HttpUrl& url, const Hosts& hosts, const HttpLimits& limits,
            const HttpClient::OnReply& on_reply)
    : url_(url),
      hosts_(hosts),
      limits_(limits),
      on_reply_(on_reply) {}

  void take(Coming<HttpCall>::Intake intake) {
    std::ranges::move(intake.requests, std::back_inserter(calls_));
    closed_ = intake.closed;
  }
  /// Starts a connection for each request that has none, as limits allow.
  void start_lanes(asio::io_context& io) {
    for (; num_lanes_ < std::min(limits_.connections, num_open()); ++num_lanes_)
      asio::co_spawn(io, lane(io), [](std::exception_ptr thrown) {
        if (thrown)
          std::rethrow_exception(thrown);
      });
  }
  /// Returns the number of requests without a reply.
  std::size_t num_open() const {
    return calls_.size() - num_ended_;
  }
  std::size_t num_ended() const {
    return num_ended_;
  }
  bool ended() const {
    return closed_ && num_open() == 0;
  }

private:
  asio::awaitable<void> lane(asio::io_context& io) {
    HttpConnection connection(io, url_, hosts_);
    while (next_ < calls_.size()) {
      const auto i = next_++;
      const auto reply = co_await connection.send(
        std::move(calls_[i]), HttpClock::now() + limits_.within);
      ++num_ended_;
      on_reply_(i, reply);
    }
    --num_lanes_;
  }

  const HttpUrl& url_;
  const Hosts& hosts_;
  const HttpLimits& limits_;
  const HttpClient::OnReply& on_reply_;
  std::deque<HttpCall> calls_; ///< those that were sent are empty
  bool closed_ = false;
  std::size_t next_ = 0;
  std::size_t num_ended_ = 0;
  std::size_t num_lanes_ = 0;
};

/// The time since the last reply, and whom it concerns.
class Silence {
public:
  explicit Silence(const HttpLimits& limits) : limits_(limits) {}

  void look(std::size_t num_ended, std::size_t num_open) {
    const auto now = HttpClock::now();
    if (num_ended != num_ended_ || num_open == 0) {
      num_ended_ = num_ended;
      since_ = now;
    }
    if (!limits_.on_silence || now - since_ < limits_.silence)
      return;
    limits_.on_silence();
    since_ = HttpClock::now();
  }

private:
  const HttpLimits& limits_;
  std::size_t num_ended_ = 0;
  HttpClock::time_point since_ = HttpClock::now();
};

/// Wakes `io` when requests come, as long as it lives.
class WakesFor {
public:
  WakesFor(const Coming<HttpCall>& calls, asio::io_context& io)
    : calls_(calls) {
    calls_.listen([&io] { asio::post(io, [] {}); });
  }
  ~WakesFor() {
    calls_.listen({});
  }
  WakesFor(const WakesFor&) = delete;
  WakesFor& operator=(const WakesFor&) = delete;

private:
  const Coming<HttpCall>& calls_;
};

} // namespace

void HttpClient::send_coming(const Coming<HttpCall>& calls,
                             const HttpLimits& limits,
                             const OnReply& on_reply) const {
  boost::system::error_code unknown;
  asio::io_context searching;
  const Hosts hosts
    = asio::ip::tcp::resolver(searching).resolve(url_.host, url_.port, unknown);
  if (unknown)
    throw FailureError({.code = Errc::bad_input,
                        .who = name_,
                        .what = url_.host + ": " + unknown.message(),
                        .cause = ""});
  HttpRound round(url_, hosts, limits, on_reply);
  asio::io_context io(1); // destroyed before the round: ends the lanes
  const auto waits = asio::make_work_guard(io); // also when nothing is sent
  const WakesFor wakes(calls, io);
  Silence silence(limits);
  for (;;) {
    round.take(calls.take());
    round.start_lanes(io);
    if (round.ended())
      return;
    io.run_one_for(kLivenessSlice);
    silence.look(round.num_ended(), round.num_open());
    if (limits.progress != nullptr && round.num_open() > 0)
      limits.progress->fetch_add(1, std::memory_order_relaxed);
    if (limits.stop != nullptr && *limits.stop)
      throw FailureError({.code = Errc::aborted,
                          .who = name_,
                          .what = "the run ended while it answered",
                          .cause = ""});
  }
}

void HttpClient::send_all(std::span<const HttpCall> calls,
                          const HttpLimits& limits,
                          const OnReply& on_reply) const {
  send_coming(all_of(calls), limits, on_reply);
}

HttpReply HttpClient::send(const HttpCall& call,
                           const HttpLimits& limits) const {
  HttpReply taken;
  send_all({&call, 1}, limits,
           [&](std::size_t, const HttpReply& reply) { taken = reply; });
  return taken;
}

namespace {

/// Returns the port that `wanted` (0: any) gets us here; 0: it is taken.
std::uint32_t bound_port(asio::io_context& io, std::uint32_t wanted) {
  boost::system::error_code error;
  asio::ip::tcp::acceptor acceptor(io);
  acceptor.open(asio::ip::tcp::v4(), error);
  acceptor.bind(
    {asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(wanted)},
    error);
  return error ? 0 : acceptor.local_endpoint().port();
}

} // namespace

std::string free_local_port(std::uint32_t index, std::uint32_t count) {
  constexpr std::uint32_t beyond = 65'536;
  asio::io_context io;
  TROUPE_CHECK(index < count && count < beyond / 2, "no port for this index");
  for (;;) {
    // from one that the system gives to the next of ours: port % count == index
    const auto given = bound_port(io, 0);
    TROUPE_CHECK(given != 0, "no port is free");
    for (auto port = given + (index + count - given % count) % count;
         port < beyond; port += count)
      if (bound_port(io, port) != 0)
        return std::to_string(port);
  }
}

} // namespace troupe::net
