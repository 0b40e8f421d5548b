// An HTTP server for programs that talk to a run: one thread, connections that
// live on, replies that may come much later and from any thread, as those of a
// model do. Each request carries a key. Whoever has none that counts gets one
// short answer and no place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::net {

struct ApiCall {
  bool is_post = false;
  std::string path; ///< "/v1/chat/completions", without what follows a ?
  std::string key;  ///< of "Authorization: Bearer KEY"; empty: none
  std::string body;
  /// The body is longer than this caller's may be, and was not read.
  bool is_too_long = false;
};

struct ApiResponse {
  unsigned status = 200;
  std::string type = "application/json";
  std::string body;
};

/// Address of a server, and who may use it freely.
struct ApiAccess {
  std::string address = "127.0.0.1";
  /// Returns whether a request with this key may be long, and keep its
  /// connection; called on the server's thread. Empty: all may.
  std::function<bool(const std::string& key)> knows;
};

class ApiServer {
public:
  /// Sends the reply; on any thread, once. A reply to a connection that has
  /// ended, or of a server that has, is dropped.
  using Answer = std::function<void(ApiResponse)>;
  /// Takes a request on the server's thread. What it throws ends the
  /// connection.
  using Handler = std::function<void(ApiCall, Answer)>;

  /// Listens (port 0: any free one) and starts its thread. Throws FailureError
  /// (io) of `who`: port in use.
  ApiServer(const std::string& who, std::uint16_t port, Handler handler,
            ApiAccess access = {});
  /// Drops open connections.
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  std::uint16_t port() const;
  /// Runs a job on the server's thread; drops it if the server has ended
  /// first. Callable from any thread.
  void post(std::function<void()> job);

private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Longest request: a conversation of a million tokens, with its pictures left
/// out.
inline constexpr std::size_t max_api_request_bytes = 64U << 20;
/// Longest request of somebody whose key is unknown.
inline constexpr std::size_t max_stranger_request_bytes = 64U << 10;

} // namespace troupe::net
