// A small HTTP server inside the master: one address, one thread, one request
// per connection. The trace page and the Prometheus endpoint are handlers of
// it. What goes wrong with one connection ends that connection.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::runtime {

using HttpRequest
  = boost::beast::http::request<boost::beast::http::string_body>;
using HttpResponse
  = boost::beast::http::response<boost::beast::http::string_body>;

/// Handles a request on the server's thread. Returns nothing if it took over
/// the socket.
using HttpHandler = std::function<std::optional<HttpResponse>(
  const HttpRequest&, boost::asio::ip::tcp::socket&)>;

HttpResponse http_reply(const HttpRequest& request,
                        boost::beast::http::status status,
                        std::string_view type, std::string_view body);
/// Returns the request's path without its query.
std::string_view path_of(const HttpRequest& request);
/// Returns what follows the path's `?`.
std::string_view query_of(const HttpRequest& request);
/// Returns the value of a name in "a=1&b=2"; empty: there is none.
std::string_view query_value(std::string_view query, std::string_view name);
std::string_view field_of(const HttpRequest& request,
                          boost::beast::http::field field);
/// Returns whether the request was sent to a name of this host: a page of
/// another site may reach a port here through a browser, and then shows its own
/// name.
bool is_for_this_host(const HttpRequest& request);

class HttpServer {
public:
  /// Listens (port 0: any free one) and starts its thread. Throws FailureError
  /// (io) of `who`: port in use.
  HttpServer(const std::string& who, const std::string& address,
             std::uint16_t port, HttpHandler handler);
  /// Stops accepting and waits a moment for connections to end.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::runtime
