#include "net/http_server/api_server.hpp"

#include "config/base/log.hpp"
#include "net/transport/listener.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <csignal>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

namespace troupe::net {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::string_view bearer = "Bearer ";

using ApiParser = http::request_parser<http::string_body>;

std::string_view view_of(boost::string_view text) {
  return {text.data(), text.size()};
}

/// Returns the call without its body.
ApiCall call_of(const http::request<http::string_body>& request) {
  ApiCall call;
  call.is_post = request.method() == http::verb::post;
  const auto target = view_of(request.target());
  call.path = target.substr(0, target.find('?'));
  const auto key = view_of(request[http::field::authorization]);
  if (key.starts_with(bearer))
    call.key = key.substr(bearer.size());
  return call;
}

} // namespace

struct ApiServer::Impl : std::enable_shared_from_this<Impl> {
  class Visit;

  Impl(std::string name, Handler with, ApiAccess to)
    : who(std::move(name)),
      handler(std::move(with)),
      access(std::move(to)) {}

  void listen(std::uint16_t port);
  void run();
  Answer answer_for(std::uint64_t visit);

  std::string who;
  Handler handler;
  ApiAccess access;
  asio::io_context io{1};
  std::shared_ptr<Listener> listener;
  std::thread thread;
  // used by the thread
  std::uint64_t last_visit = 0;
  std::map<std::uint64_t, std::shared_ptr<Visit>> waiting; ///< for an answer
};

/// One connection: a request, its reply, the next request.
class ApiServer::Impl::Visit : public std::enable_shared_from_this<Visit> {
public:
  Visit(Impl& server, tcp::socket socket, PendingConnections::Entry entry)
    : server_(server),
      socket_(std::move(socket)),
      entry_(std::move(entry)),
      number_(++server.last_visit) {}

  void start() {
    entry_.when_late([self = weak_from_this()] {
      boost::system::error_code ignored;
      if (const auto late = self.lock())
        late->socket_.close(ignored);
    });
    read();
  }

  void write(ApiResponse response) {
    reply_.emplace(static_cast<http::status>(response.status), version_);
    reply_->set(http::field::content_type, response.type);
    reply_->set(http::field::cache_control, "no-store");
    reply_->keep_alive(keep_alive_);
    reply_->body() = std::move(response.body);
    reply_->prepare_payload();
    http::async_write(
      socket_, *reply_, [self = shared_from_this()](auto error, auto) {
        if (!error && self->keep_alive_)
          return self->read();
        boost::system::error_code ignored;
        self->socket_.shutdown(tcp::socket::shutdown_send, ignored);
      });
  }

private:
  void read() {
    parser_.emplace();
    parser_->body_limit(max_api_request_bytes);
    http::async_read_header(socket_, buffer_, *parser_,
                            [self = shared_from_this()](auto error, auto) {
                              self->read_body(error);
                            });
  }

  /// Reads what this caller may send, once it is known who it is.
  void read_body(boost::system::error_code error) {
    if (error && error != http::error::body_limit)
      return;
    call_ = call_of(parser_->get());
    const bool is_known
      = !server_.access.knows || server_.access.knows(call_.key);
    version_ = parser_->get().version();
    keep_alive_ = is_known && parser_->get().keep_alive();
    if (is_known)
      entry_.leave(); // it has greeted
    const auto most
      = is_known ? max_api_request_bytes : max_stranger_request_bytes;
    if (error || parser_->content_length().value_or(0) > most)
      return refuse_body();
    parser_->body_limit(most);
    http::async_read(socket_, buffer_, *parser_,
                     [self = shared_from_this()](auto failed, auto) {
                       if (failed == http::error::body_limit)
                         self->refuse_body();
                       else if (!failed)
                         self->handle(self->parser_->release().body());
                     });
  }

  /// The rest of the body stays in the connection, so this ends with the
  /// answer.
  void refuse_body() {
    keep_alive_ = false;
    call_.is_too_long = true;
    handle({});
  }

  void handle(std::string body) {
    call_.body = std::move(body);
    server_.waiting[number_] = shared_from_this();
    server_.handler(std::move(call_), server_.answer_for(number_));
  }

  Impl& server_; ///< outlives its connections
  tcp::socket socket_;
  PendingConnections::Entry entry_;
  std::uint64_t number_;
  boost::beast::flat_buffer buffer_;
  std::optional<ApiParser> parser_;
  ApiCall call_; ///< the request under way
  std::optional<http::response<http::string_body>> reply_;
  unsigned version_ = 11;
  bool keep_alive_ = true;
};

void ApiServer::Impl::listen(std::uint16_t port) {
  listener = std::make_shared<Listener>(io, who, access.address, port);
  listener->start([this](tcp::socket socket, const std::string&,
                         PendingConnections::Entry entry) {
    std::make_shared<Visit>(*this, std::move(socket), std::move(entry))
      ->start();
  });
}

/// Runs jobs until stopped; a mistake of one connection ends that one only.
void ApiServer::Impl::run() {
  for (bool is_over = false; !is_over;)
    try {
      io.run();
      is_over = true;
    } catch (const std::exception& error) {
      log::warn_of_stranger(log::net,
                            who + ": a connection ends: " + error.what());
    }
}

ApiServer::Answer ApiServer::Impl::answer_for(std::uint64_t visit) {
  return [weak = weak_from_this(), visit](ApiResponse response) {
    const auto server = weak.lock();
    if (!server)
      return;
    asio::post(server->io, [raw = server.get(), visit,
                            reply = std::move(response)]() mutable {
      const auto found = raw->waiting.extract(visit);
      if (!found.empty())
        found.mapped()->write(std::move(reply));
    });
  };
}

ApiServer::ApiServer(const std::string& who, std::uint16_t port,
                     Handler handler, ApiAccess access)
  : impl_(std::make_shared<Impl>(who, std::move(handler), std::move(access))) {
  impl_->listen(port);
  impl_->thread = std::thread([impl = impl_.get()] {
    sigset_t all;
    sigfillset(&all); // signals are for the thread that waits for them
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    impl->run();
  });
}

ApiServer::~ApiServer() {
  asio::post(impl_->io, [impl = impl_.get()] {
    impl->listener->close();
    impl->waiting.clear();
  });
  impl_->io.stop();
  impl_->thread.join();
}

std::uint16_t ApiServer::port() const {
  return impl_->listener->port();
}

void ApiServer::post(std::function<void()> job) {
  asio::post(impl_->io, std::move(job));
}

} // namespace troupe::net
