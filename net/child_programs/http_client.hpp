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

namespace troupe::net {

struct HttpLimits {
  std::chrono::milliseconds within{0}; ///< of each request
  std::size_t connections = 1;         ///< requests in flight
  const std::atomic<bool>* stop = nullptr;
  /// Counts while requests are within their limits; null: nobody looks.
  std::atomic<std::uint64_t>* progress = nullptr;
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
