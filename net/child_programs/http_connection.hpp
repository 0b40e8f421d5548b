// One connection to an HTTP server, plain or over TLS, opened when needed and
// kept while it works: what rewards by URL and servers that generate have in
// common. Over TLS the server's certificate must be of the host's name and
// signed by one that this host trusts: OpenSSL's, or those of SSL_CERT_FILE.
#pragma once

#include "config/base/http_url.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace troupe::net {

using HttpClock = std::chrono::steady_clock;

/// A request: POST, or GET without a body.
struct HttpCall {
  std::string target; ///< "/health"
  std::string body = {};
  bool is_get = false;
};

/// Outcome of one attempt.
struct HttpReply {
  boost::system::error_code error; ///< of the connection; then no status
  unsigned status = 0;
  std::string body;

  bool answered() const {
    return !error && status / 100 == 2;
  }
  /// Returns whether the connection failed, or the server is overloaded or
  /// broken (408, 429, 5xx).
  bool worth_another_try() const;
  bool late() const;
  /// Returns what happened, in words; a long body is cut.
  std::string text() const;
};

class HttpConnection {
public:
  /// Keeps references to the address and the hosts that it was resolved to.
  HttpConnection(boost::asio::io_context& io, const HttpUrl& url,
                 const boost::asio::ip::tcp::resolver::results_type& hosts);

  boost::asio::awaitable<HttpReply> send(HttpCall call,
                                         HttpClock::time_point deadline);

private:
  boost::asio::awaitable<void> open(HttpReply& reply);
  template <class Stream>
  boost::asio::awaitable<void> exchange(Stream& stream, const HttpCall& call,
                                        HttpReply& reply);

  using TlsStream = boost::asio::ssl::stream<boost::beast::tcp_stream&>;

  boost::beast::tcp_stream stream_;
  std::optional<TlsStream> tls_; ///< over stream_, while it is open; https
  const HttpUrl& url_;
  const boost::asio::ip::tcp::resolver::results_type& hosts_;
  boost::beast::flat_buffer buffer_;
  bool open_ = false;
};

} // namespace troupe::net
