#include "runtime/live/trace_server.hpp"

#include "config/defaults.hpp"
#include "config/error.hpp"
#include "config/log.hpp"
#include "runtime/live/http_server.hpp"
#include "runtime/live/page.hpp"
#include "runtime/live/watch_session.hpp"
#include "runtime/own_address.hpp"
#include "runtime/random_hex.hpp"

#include <boost/beast/websocket/rfc6455.hpp>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace troupe::runtime {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;

namespace trace_server_internal {

/// Who may come in, and to what.
struct Door {
  RunFolder folder;
  std::string token;
  /// Watchers get what is written by then, and their connections end.
  std::atomic<bool> closing = false;

  Door(RunFolder of, std::string with)
    : folder(std::move(of)),
      token(std::move(with)) {}

  /// Why a request is refused; empty: it is not.
  std::string refuse(const HttpRequest& request) const {
    const auto origin = field_of(request, http::field::origin);
    const auto host = field_of(request, http::field::host);
    if (!origin.empty() && origin != "http://" + std::string(host))
      return "this page belongs to another site";
    if (token.empty())
      return is_for_this_host(request) ? "" : "this page is for this host only";
    return std::string_view(request.target().data(), request.target().size())
               .ends_with("?token=" + token)
             ? ""
             : "the address needs the run's ?token=..";
  }
};

} // namespace trace_server_internal

namespace {

using trace_server_internal::Door;

/// The page, or the upgrade to a WebSocket.
std::optional<HttpResponse> visit(const std::shared_ptr<const Door>& door,
                                  const HttpRequest& request,
                                  tcp::socket& socket) {
  const auto path = path_of(request);
  if (const auto why = door->refuse(request); !why.empty())
    return http_answer(request, http::status::forbidden, "text/plain", why);
  if (boost::beast::websocket::is_upgrade(request) && path == "/events") {
    std::make_shared<WatchSession>(
      std::move(socket), door->folder,
      std::shared_ptr<const std::atomic<bool>>(door, &door->closing))
      ->start(request);
    return std::nullopt;
  }
  if (request.method() == http::verb::get && path == "/")
    return http_answer(request, http::status::ok, "text/html; charset=utf-8",
                       trace_page());
  return http_answer(request, http::status::not_found, "text/plain",
                     "there is the page / and nothing else");
}

} // namespace

struct TraceServer::Impl {
  Impl(const RunFolder& folder, TraceServerOptions wanted)
    : options(std::move(wanted)),
      door(std::make_shared<Door>(folder, options.token)),
      server("trace page", options.address, options.port,
             [door = std::shared_ptr<const Door>(door)](
               const HttpRequest& request, tcp::socket& socket) {
               return visit(door, request, socket);
             }) {
    options.port = server.port();
  }
  ~Impl() {
    door->closing = true;
  }

  TraceServerOptions options;
  std::shared_ptr<Door> door;
  HttpServer server;
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
  : impl_(std::make_unique<Impl>(folder, std::move(options))) {}

TraceServer::~TraceServer() = default;

std::string TraceServer::url() const {
  const auto& options = impl_->options;
  return fmt::format("http://{}:{}/{}", options.address, options.port,
                     options.token.empty() ? "" : "?token=" + options.token);
}

} // namespace troupe::runtime
