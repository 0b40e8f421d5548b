#include "runtime/live/trace_server.hpp"

#include "config/defaults.hpp"
#include "config/error.hpp"
#include "config/log.hpp"
#include "runtime/live/page.hpp"
#include "runtime/live/watch_session.hpp"
#include "runtime/random_hex.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace troupe::runtime {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Request = WatchSession::Request;
using Response = http::response<http::string_body>;

/// Time for watchers to get the last messages of a run.
constexpr auto farewell = std::chrono::milliseconds{500};

/// A page of another site may reach a port on this host through the watcher's
/// browser: it then shows its own name as Host or Origin.
bool is_local_name(std::string_view host) {
  const auto name = host.substr(0, host.rfind(':'));
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

std::string_view text_of(boost::string_view text) {
  return {text.data(), text.size()};
}

bool is_loopback(const std::string& address) {
  boost::system::error_code error;
  const auto parsed = asio::ip::make_address(address, error);
  return !error && parsed.is_loopback();
}

struct Door {
  RunFolder folder;
  std::string token;
  /// Watchers get what is written by then, and their connections end.
  std::atomic<bool> closing = false;

  Door(RunFolder of, std::string with)
    : folder(std::move(of)),
      token(std::move(with)) {}

  /// Why a request is refused; empty: it is not.
  std::string refuse(const Request& request) const {
    const auto host = text_of(request[http::field::host]);
    const auto origin = text_of(request[http::field::origin]);
    if (!origin.empty() && origin != "http://" + std::string(host))
      return "this page belongs to another site";
    if (token.empty())
      return is_local_name(host) ? "" : "this page is for this host only";
    return text_of(request.target()).ends_with("?token=" + token)
             ? ""
             : "the address needs the run's ?token=..";
  }
};

Response answer(const Request& request, http::status status,
                std::string_view type, std::string_view body) {
  Response response(status, request.version());
  response.set(http::field::content_type,
               boost::string_view(type.data(), type.size()));
  response.set(http::field::cache_control, "no-store");
  response.set(http::field::x_frame_options, "DENY");
  response.keep_alive(false);
  response.body() = std::string(body);
  response.prepare_payload();
  return response;
}

/// One HTTP request: the page, or the upgrade to a WebSocket.
class Visit : public std::enable_shared_from_this<Visit> {
public:
  Visit(tcp::socket socket, std::shared_ptr<const Door> door)
    : socket_(std::move(socket)),
      door_(std::move(door)) {}

  void start() {
    http::async_read(socket_, buffer_, request_,
                     [self = shared_from_this()](auto error, auto) {
                       if (!error)
                         self->handle();
                     });
  }

private:
  void handle() {
    const auto target = text_of(request_.target());
    const auto path = target.substr(0, target.find('?'));
    if (const auto why = door_->refuse(request_); !why.empty())
      return reply(
        answer(request_, http::status::forbidden, "text/plain", why));
    if (boost::beast::websocket::is_upgrade(request_) && path == "/events")
      return std::make_shared<WatchSession>(
               std::move(socket_), door_->folder,
               std::shared_ptr<const std::atomic<bool>>(door_, &door_->closing))
        ->start(request_);
    if (request_.method() == http::verb::get && path == "/")
      return reply(answer(request_, http::status::ok,
                          "text/html; charset=utf-8", trace_page()));
    reply(answer(request_, http::status::not_found, "text/plain",
                 "there is the page / and nothing else"));
  }

  void reply(Response response) {
    auto kept = std::make_shared<Response>(std::move(response));
    http::async_write(
      socket_, *kept, [self = shared_from_this(), kept](auto, auto) {
        boost::system::error_code ignored;
        self->socket_.shutdown(tcp::socket::shutdown_send, ignored);
      });
  }

  tcp::socket socket_;
  std::shared_ptr<const Door> door_;
  boost::beast::flat_buffer buffer_;
  Request request_;
};

} // namespace

struct TraceServer::Impl {
  Impl(const RunFolder& folder, TraceServerOptions wanted)
    : options(std::move(wanted)),
      door(std::make_shared<Door>(folder, options.token)),
      acceptor(io) {}

  void listen() {
    const tcp::endpoint at(asio::ip::make_address(options.address),
                           options.port);
    acceptor.open(at.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(at);
    acceptor.listen();
    options.port = acceptor.local_endpoint().port();
  }

  void accept_next() {
    acceptor.async_accept([this](auto error, tcp::socket socket) {
      if (error == asio::error::operation_aborted)
        return;
      if (!error)
        std::make_shared<Visit>(std::move(socket), door)->start();
      accept_next();
    });
  }

  TraceServerOptions options;
  std::shared_ptr<Door> door;
  std::promise<void> ended; ///< nobody is connected any more
  asio::io_context io{1};
  tcp::acceptor acceptor;
  std::thread thread;
};

TraceServerOptions page_options(const std::string& bind, std::uint16_t port) {
  TraceServerOptions options;
  options.port = port;
  if (bind.empty() || bind == "auto" || is_loopback(bind))
    return options;
  options.address = bind;
  options.token = random_hex(defaults::token_bytes);
  return options;
}

void open_in_browser(const std::string& url) {
  std::string program = "xdg-open";
  std::string address = url;
  char* const arguments[] = {program.data(), address.data(), nullptr};
  pid_t child = 0;
  if (const int error = ::posix_spawnp(&child, program.c_str(), nullptr,
                                       nullptr, arguments, environ);
      error != 0)
    log::runtime.warn("cannot open a browser: "
                      + std::generic_category().message(error));
  else
    std::thread([child] { ::waitpid(child, nullptr, 0); }).detach();
}

TraceServer::TraceServer(const RunFolder& folder, TraceServerOptions options)
  : impl_(std::make_unique<Impl>(folder, std::move(options))) {
  try {
    impl_->listen();
  } catch (const boost::system::system_error& error) {
    throw FailureError(
      {.code = Errc::io,
       .who = "trace page",
       .what = fmt::format("cannot listen on {}:{}", impl_->options.address,
                           impl_->options.port),
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

TraceServer::~TraceServer() {
  impl_->door->closing = true;
  asio::post(impl_->io, [impl = impl_.get()] { impl->acceptor.close(); });
  impl_->ended.get_future().wait_for(farewell);
  impl_->io.stop();
  impl_->thread.join();
}

std::string TraceServer::url() const {
  const auto& options = impl_->options;
  return fmt::format("http://{}:{}/{}", options.address, options.port,
                     options.token.empty() ? "" : "?token=" + options.token);
}

} // namespace troupe::runtime
