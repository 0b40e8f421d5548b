#include "runtime/live/http_server.hpp"

#include "config/error.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <future>
#include <thread>
#include <utility>

namespace troupe::runtime {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

/// Time for connections to get the last of a run.
constexpr auto farewell = std::chrono::milliseconds{500};
constexpr auto accept_retry_pause = std::chrono::milliseconds{100};

std::string_view text_of(boost::string_view text) {
  return {text.data(), text.size()};
}

/// One request and its answer.
class Visit : public std::enable_shared_from_this<Visit> {
public:
  Visit(tcp::socket socket, const HttpHandler& handler)
    : socket_(std::move(socket)),
      handler_(handler) {}

  void start() {
    http::async_read(socket_, buffer_, request_,
                     [self = shared_from_this()](auto error, auto) {
                       if (!error)
                         self->handle();
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
  const HttpHandler& handler_; ///< the server's, which outlives its thread
  boost::beast::flat_buffer buffer_;
  HttpRequest request_;
};

} // namespace

HttpResponse http_answer(const HttpRequest& request, http::status status,
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

std::string_view field_of(const HttpRequest& request, http::field field) {
  return text_of(request[field]);
}

bool is_for_this_host(const HttpRequest& request) {
  const auto host = field_of(request, http::field::host);
  const auto name = host.substr(0, host.rfind(':'));
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

struct HttpServer::Impl {
  explicit Impl(HttpHandler with) : handler(std::move(with)), acceptor(io) {}

  void listen(const std::string& address, std::uint16_t port) {
    tcp::resolver resolver(io);
    const tcp::endpoint at
      = *resolver.resolve(address, std::to_string(port)).begin();
    acceptor.open(at.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(at);
    acceptor.listen();
  }

  void accept_next() {
    acceptor.async_accept([this](auto error, tcp::socket socket) {
      if (error == asio::error::operation_aborted)
        return;
      if (error)
        return accept_later(); // out of descriptors: at once would spin
      std::make_shared<Visit>(std::move(socket), handler)->start();
      accept_next();
    });
  }

  void accept_later() {
    retry.expires_after(accept_retry_pause);
    retry.async_wait([this](auto) {
      if (acceptor.is_open())
        accept_next();
    });
  }

  HttpHandler handler;
  std::promise<void> ended; ///< nobody is connected any more
  asio::io_context io{1};
  tcp::acceptor acceptor;
  asio::steady_timer retry{io};
  std::thread thread;
};

HttpServer::HttpServer(const std::string& who, const std::string& address,
                       std::uint16_t port, HttpHandler handler)
  : impl_(std::make_unique<Impl>(std::move(handler))) {
  try {
    impl_->listen(address, port);
  } catch (const boost::system::system_error& error) {
    throw FailureError(
      {.code = Errc::io,
       .who = who,
       .what = fmt::format("cannot listen on {}:{}", address, port),
       .cause = error.code().message()});
  }
  impl_->accept_next();
  impl_->thread = std::thread([this] {
    sigset_t all;
    sigfillset(&all); // signals are for the thread that waits for them
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    impl_->io.run();
    impl_->ended.set_value();
  });
}

HttpServer::~HttpServer() {
  asio::post(impl_->io, [impl = impl_.get()] { impl->acceptor.close(); });
  impl_->ended.get_future().wait_for(farewell);
  impl_->io.stop();
  impl_->thread.join();
}

std::uint16_t HttpServer::port() const {
  return impl_->acceptor.local_endpoint().port();
}

} // namespace troupe::runtime
