#include "net/child_programs/http_connection.hpp"

#include "net/base/defaults.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

namespace troupe::net {

namespace {

namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;

/// Length at which a message cuts an answer.
constexpr std::size_t most_shown_of_reply = 200;

auto redirected_into(boost::system::error_code& error) {
  return boost::asio::redirect_error(boost::asio::use_awaitable, error);
}

/// Returns what this process trusts, read once.
ssl::context& trusted_servers() {
  static ssl::context context = [] {
    ssl::context made(ssl::context::tls_client);
    boost::system::error_code ignored; // without any, no server is trusted
    made.set_default_verify_paths(ignored);
    made.set_verify_mode(ssl::verify_peer);
    SSL_CTX_set_min_proto_version(made.native_handle(), TLS1_2_VERSION);
    return made;
  }();
  return context;
}

bool is_of_tls(const boost::system::error_code& error) {
  return error.category() == boost::asio::error::get_ssl_category();
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
      || error == boost::asio::error::connection_reset
      || error == ssl::error::stream_truncated)
    return "the server dropped the connection (" + error.message() + ")";
  if (error && is_of_tls(error))
    return "TLS: " + error.message()
           + " (SSL_CERT_FILE may name the certificates to trust)";
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
    co_await open(reply);
  open_ = !reply.error;
  if (open_ && tls_)
    co_await exchange(*tls_, call, reply);
  else if (open_)
    co_await exchange(stream_, call, reply);
  if (!open_) {
    tls_.reset();
    stream_.close();
    buffer_.clear();
  }
  co_return reply;
}

boost::asio::awaitable<void> HttpConnection::open(HttpReply& reply) {
  co_await stream_.async_connect(hosts_, redirected_into(reply.error));
  if (reply.error || !url_.secure)
    co_return;
  tls_.emplace(stream_, trusted_servers());
  tls_->set_verify_callback(ssl::host_name_verification(url_.host));
  // servers of several names choose their certificate by it
  SSL_set_tlsext_host_name(tls_->native_handle(), url_.host.c_str());
  co_await tls_->async_handshake(ssl::stream_base::client,
                                 redirected_into(reply.error));
}

template <class Stream>
boost::asio::awaitable<void> HttpConnection::exchange(Stream& stream,
                                                      const HttpCall& call,
                                                      HttpReply& reply) {
  http::request<http::string_body> request{
    call.is_get ? http::verb::get : http::verb::post, call.target, 11};
  request.set(http::field::host, url_.host + ":" + url_.port);
  request.set(http::field::content_type, "application/json");
  request.keep_alive(true);
  request.body() = call.body;
  request.prepare_payload();
  open_ = false;
  co_await http::async_write(stream, request, redirected_into(reply.error));
  if (reply.error)
    co_return;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMaxReplyBytes);
  co_await http::async_read(stream, buffer_, parser,
                            redirected_into(reply.error));
  if (reply.error)
    co_return;
  reply.status = parser.get().result_int();
  reply.body = std::move(parser.get().body());
  open_ = parser.get().keep_alive();
}

} // namespace troupe::net
