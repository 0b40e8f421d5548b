// Requests to one HTTP server, many at once, from a thread that waits for the
// answers: what a device thread does with a server that generates for it.
#pragma once

#include "config/base/http_url.hpp"
#include "net/child_programs/http_connection.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe::net {

/// Requests that come while others are under way.
template <class Request>
struct Coming {
  struct Intake {
    std::vector<Request> requests;
    bool closed = false; ///< no more will come
  };
  /// Returns what has come since its last call.
  std::function<Intake()> take;
  /// Takes what to call, on any thread, when something has come; then nothing,
  /// after which it is not called any more.
  std::function<void(std::function<void()> wake)> listen;
};

/// Returns a source that has these requests and gets no others.
template <class Request>
Coming<Request> all_of(std::span<const Request> requests) {
  return {
    .take =
      [left = std::vector(requests.begin(), requests.end())]() mutable {
        return typename Coming<Request>::Intake{std::exchange(left, {}), true};
      },
    .listen = [](const std::function<void()>&) {}};
}

struct HttpLimits {
  std::chrono::milliseconds within{0}; ///< of each request
  std::size_t connections = 1;         ///< requests in flight
  const std::atomic<bool>* stop = nullptr;
  /// Counts while requests are within their limits; null: nobody looks.
  std::atomic<std::uint64_t>* progress = nullptr;
  /// Is called whenever no reply has come for as long as `silence`, between
  /// replies; what it throws ends the round. It may send requests.
  std::function<void()> on_silence = {};
  std::chrono::milliseconds silence{0};
};

class HttpClient {
public:
  /// `name` is the server's, for messages.
  HttpClient(HttpUrl url, std::string name)
    : url_(std::move(url)),
      name_(std::move(name)) {}

  /// Receives the reply to request i; what it throws ends the round.
  using OnReply = std::function<void(std::size_t i, const HttpReply& reply)>;

  /// Sends all requests and returns when each has been answered or has failed;
  /// nothing is tried twice. Throws FailureError: aborted once `stop` is set,
  /// bad_input if the host is unknown.
  void send_all(std::span<const HttpCall> calls, const HttpLimits& limits,
                const OnReply& on_reply) const;
  /// Does the same with requests that come meanwhile, until no more do; i
  /// counts them in their order. What `calls` throws ends the round.
  void send_coming(const Coming<HttpCall>& calls, const HttpLimits& limits,
                   const OnReply& on_reply) const;
  HttpReply send(const HttpCall& call, const HttpLimits& limits) const;

  const HttpUrl& url() const {
    return url_;
  }
  const std::string& name() const {
    return name_;
  }

private:
  HttpUrl url_;
  std::string name_;
};

/// Returns a port of this host that nobody listened at a moment ago. Callers
/// with different `index`, all below `count`, never get the same one.
std::string free_local_port(std::uint32_t index = 0, std::uint32_t count = 1);

} // namespace troupe::net
