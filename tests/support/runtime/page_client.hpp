// A browser, as far as tests of the page need one: requests and the WebSocket,
// with the token and cookie of the page's address.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include <cstdint>
#include <string>

namespace troupe::test {

class PageClient {
public:
  using Reply = boost::beast::http::response<boost::beast::http::string_body>;
  using Socket = boost::asio::ip::tcp::socket;
  using Events = boost::beast::websocket::stream<Socket>;

  /// `url`: as the page's server gives it.
  explicit PageClient(const std::string& url) {
    const auto host = url.substr(url.find("//") + 2);
    const auto colon = host.find(':');
    port_ = static_cast<std::uint16_t>(std::stoi(host.substr(colon + 1)));
    const auto query = host.find('?');
    query_ = query == std::string::npos ? "" : host.substr(query);
  }
  std::uint16_t port() const {
    return port_;
  }
  const std::string& query() const {
    return query_;
  }

  Reply get(const std::string& target, const std::string& host = "127.0.0.1",
            const std::string& origin = "", const std::string& cookie = "") {
    namespace http = boost::beast::http;
    auto socket = connected();
    http::request<http::string_body> request(http::verb::get, target, 11);
    request.set(http::field::host, host);
    if (!origin.empty())
      request.set(http::field::origin, origin);
    if (!cookie.empty())
      request.set(http::field::cookie, cookie);
    http::write(socket, request);
    boost::beast::flat_buffer buffer;
    Reply answer;
    http::read(socket, buffer, answer);
    return answer;
  }
  /// `more`: after the query of the page's address.
  Events events(const std::string& more = "") {
    Events socket(connected());
    socket.handshake("127.0.0.1", "/events" + query_ + more);
    return socket;
  }
  static std::string next(Events& events) {
    boost::beast::flat_buffer buffer;
    events.read(buffer);
    return boost::beast::buffers_to_string(buffer.data());
  }

private:
  Socket connected() {
    Socket socket(io_);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), port_});
    return socket;
  }

  boost::asio::io_context io_;
  std::uint16_t port_ = 0;
  std::string query_;
};

} // namespace troupe::test
