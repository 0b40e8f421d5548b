// A small HTTP server inside the master: one address, one thread, one request a
// connection. The trace page and the Prometheus endpoint are handlers of it.
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

/// On the server's thread. Nothing: it took the socket over.
using HttpHandler = std::function<std::optional<HttpResponse>(
  const HttpRequest&, boost::asio::ip::tcp::socket&)>;

HttpResponse http_answer(const HttpRequest& request,
                         boost::beast::http::status status,
                         std::string_view type, std::string_view body);
/// The request's path without its query.
std::string_view path_of(const HttpRequest& request);
std::string_view field_of(const HttpRequest& request,
                          boost::beast::http::field field);
/// Whether the request was sent to a name of this host: a page of another site
/// may reach a port here through a browser, and then shows its own name.
bool is_for_this_host(const HttpRequest& request);

class HttpServer {
public:
  /// Listens (port 0: any free one) and starts its thread. FailureError (io) of
  /// `who`: port in use.
  HttpServer(const std::string& who, const std::string& address,
             std::uint16_t port, HttpHandler handler);
  /// Accepts no more and gives connections a moment to end.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::runtime
