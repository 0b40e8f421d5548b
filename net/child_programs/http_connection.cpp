#include "net/child_programs/http_connection.hpp"

#include "net/base/defaults.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

namespace troupe::net {

namespace {

namespace http = boost::beast::http;

/// Length at which a message cuts an answer.
constexpr std::size_t most_shown_of_reply = 200;

auto redirected_into(boost::system::error_code& error) {
  return boost::asio::redirect_error(boost::asio::use_awaitable, error);
}

} // namespace

bool HttpReply::worth_another_try() const {
  constexpr unsigned request_timeout = 408;
  constexpr unsigned too_many_requests = 429;
  return error || status == request_timeout || status == too_many_requests
         || status / 100 == 5;
}

bool HttpReply::late() const {
  return error == boost::beast::error::timeout;
}

std::string HttpReply::text() const {
  if (error == http::error::end_of_stream
      || error == http::error::partial_message
      || error == boost::asio::error::connection_reset)
    return "the server dropped the connection (" + error.message() + ")";
  if (error)
    return error.message();
  return "HTTP status " + std::to_string(status)
         + (body.empty() ? "" : ": " + body.substr(0, most_shown_of_reply));
}

HttpConnection::HttpConnection(
  boost::asio::io_context& io, const HttpUrl& url,
  const boost::asio::ip::tcp::resolver::results_type& hosts)
  : stream_(io),
    url_(url),
    hosts_(hosts) {}

boost::asio::awaitable<HttpReply>
HttpConnection::send(HttpCall call, HttpClock::time_point deadline) {
  HttpReply reply;
  stream_.expires_at(deadline);
  if (!open_)
    co_await stream_.async_connect(hosts_, redirected_into(reply.error));
  open_ = !reply.error;
  if (open_)
    co_await exchange(call, reply);
  if (!open_) {
    stream_.close();
    buffer_.clear();
  }
  co_return reply;
}

boost::asio::awaitable<void> HttpConnection::exchange(const HttpCall& call,
                                                      HttpReply& reply) {
  http::request<http::string_body> request{
    call.is_get ? http::verb::get : http::verb::post, call.target, 11};
  request.set(http::field::host, url_.host + ":" + url_.port);
  request.set(http::field::content_type, "application/json");
  request.keep_alive(true);
  request.body() = call.body;
  request.prepare_payload();
  open_ = false;
  co_await http::async_write(stream_, request, redirected_into(reply.error));
  if (reply.error)
    co_return;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMaxReplyBytes);
  co_await http::async_read(stream_, buffer_, parser,
                            redirected_into(reply.error));
  if (reply.error)
    co_return;
  reply.status = parser.get().result_int();
  reply.body = std::move(parser.get().body());
  open_ = parser.get().keep_alive();
}

} // namespace troupe::net
