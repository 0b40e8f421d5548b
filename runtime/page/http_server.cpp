#include "runtime/page/http_server.hpp"

#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "net/transport/listener.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <future>
#include <thread>
#include <utility>

namespace troupe::runtime {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;

/// Time for connections to receive the last messages of a run.
constexpr auto farewell = std::chrono::milliseconds{500};

std::string_view text_of(boost::string_view text) {
  return {text.data(), text.size()};
}

/// Runs the body of a handler: what it throws ends its connection, never the
/// run.
template <class Body>
void guarded(const std::string& who, Body&& body) {
  try {
    body();
  } catch (const std::exception& error) {
    log::warn_of_stranger(log::runtime,
                          who + ": a connection ends: " + error.what());
  }
}

/// One request and its response. It gives its place to others if it takes too
/// long.
class Visit : public std::enable_shared_from_this<Visit> {
public:
  Visit(tcp::socket socket, net::PendingConnections::Entry entry,
        std::string who, const HttpHandler& handler)
    : socket_(std::move(socket)),
      entry_(std::move(entry)),
      who_(std::move(who)),
      handler_(handler) {}

  void start() {
    entry_.when_late([self = weak_from_this()] {
      boost::system::error_code ignored;
      if (const auto late = self.lock())
        late->socket_.close(ignored);
    });
    http::async_read(socket_, buffer_, request_,
                     [self = shared_from_this()](auto error, auto) {
                       if (!error)
                         guarded(self->who_, [&] { self->handle(); });
                     });
  }

private:
  void handle() {
    auto response = handler_(request_, socket_);
    if (!response)
      return;
    auto kept = std::make_shared<HttpResponse>(std::move(*response));
    http::async_write(
      socket_, *kept, [self = shared_from_this(), kept](auto, auto) {
        boost::system::error_code ignored;
        self->socket_.shutdown(tcp::socket::shutdown_send, ignored);
      });
  }

  tcp::socket socket_;
  net::PendingConnections::Entry entry_;
  std::string who_;            ///< the server, for messages
  const HttpHandler& handler_; ///< the server's, which outlives its thread
  boost::beast::flat_buffer buffer_;
  HttpRequest request_;
};

} // namespace

HttpResponse http_reply(const HttpRequest& request, http::status status,
                        std::string_view type, std::string_view body) {
  HttpResponse response(status, request.version());
  response.set(http::field::content_type,
               boost::string_view(type.data(), type.size()));
  response.set(http::field::cache_control, "no-store");
  response.set(http::field::x_frame_options, "DENY");
  response.keep_alive(false);
  response.body() = std::string(body);
  response.prepare_payload();
  return response;
}

std::string_view path_of(const HttpRequest& request) {
  const auto target = text_of(request.target());
  return target.substr(0, target.find('?'));
}

std::string_view query_of(const HttpRequest& request) {
  const auto target = text_of(request.target());
  const auto mark = target.find('?');
  return mark == std::string_view::npos ? "" : target.substr(mark + 1);
}

std::string_view query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const auto part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), part.size() + 1));
    if (part.starts_with(name) && part.substr(name.size()).starts_with('='))
      return part.substr(name.size() + 1);
  }
  return {};
}

std::string_view field_of(const HttpRequest& request, http::field field) {
  return text_of(request[field]);
}

bool is_for_this_host(const HttpRequest& request) {
  const auto host = field_of(request, http::field::host);
  const auto name = host.substr(0, host.rfind(':'));
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

struct HttpServer::Impl {
  Impl(std::string name, HttpHandler with)
    : who(std::move(name)),
      handler(std::move(with)) {}

  void listen(const std::string& address, std::uint16_t port) {
    tcp::resolver resolver(io);
    const tcp::endpoint at
      = *resolver.resolve(address, std::to_string(port)).begin();
    listener = std::make_shared<net::Listener>(io, who,
                                               at.address().to_string(), port);
    listener->start([this](tcp::socket socket, const std::string&,
                           net::PendingConnections::Entry entry) {
      std::make_shared<Visit>(std::move(socket), std::move(entry), who, handler)
        ->start();
    });
  }

  /// Returns when all connections have ended.
  void run() {
    for (bool is_over = false; !is_over;)
      guarded(who, [&] {
        io.run();
        is_over = true;
      });
  }

  std::string who;
  HttpHandler handler;
  std::promise<void> ended; ///< set when all connections have ended
  asio::io_context io{1};
  std::shared_ptr<net::Listener> listener;
  std::thread thread;
};

HttpServer::HttpServer(const std::string& who, const std::string& address,
                       std::uint16_t port, HttpHandler handler)
  : impl_(std::make_unique<Impl>(who, std::move(handler))) {
  try {
    impl_->listen(address, port);
  } catch (const boost::system::system_error& error) {
    throw FailureError(
      {.code = Errc::io,
       .who = who,
       .what = fmt::format("cannot listen on {}:{}", address, port),
       .cause = error.code().message()});
  }
  impl_->thread = std::thread([this] {
    sigset_t all;
    sigfillset(&all); // signals are for the thread that waits for them
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    impl_->run();
    impl_->ended.set_value();
  });
}

HttpServer::~HttpServer() {
  asio::post(impl_->io, [impl = impl_.get()] { impl->listener->close(); });
  impl_->ended.get_future().wait_for(farewell);
  impl_->io.stop();
  impl_->thread.join();
}

std::uint16_t HttpServer::port() const {
  return impl_->listener->port();
}

} // namespace troupe::runtime
