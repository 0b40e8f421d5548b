#include "runtime/page/trace_server.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/defaults.hpp"
#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "config/base/own_address.hpp"
#include "config/base/random_hex.hpp"
#include "net/child_programs/child_pool.hpp"
#include "runtime/base/temporary_folder.hpp"
#include "runtime/page/http_server.hpp"
#include "runtime/page/page_access.hpp"
#include "runtime/page/watch_session.hpp"

#include <boost/beast/websocket/rfc6455.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe::runtime {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;

namespace trace_server_internal {

/// The data that viewers get, and the rule for who may be one.
struct Endpoint {
  std::vector<RunFolder> folders; ///< the run, then those beside it
  PageAccess access;
  /// Set at the end: viewers get what is written by then, and their connections
  /// end.
  std::atomic<bool> closing = false;

  Endpoint(const RunFolder& folder, const TraceServerOptions& options)
    : folders{folder},
      access(options.token) {
    folders.insert(folders.end(), options.beside.begin(), options.beside.end());
  }
};

} // namespace trace_server_internal

namespace {

using trace_server_internal::Endpoint;

constexpr std::size_t nonce_bytes = 16;

/// Returns what a viewer gets of the run that its address names; without a
/// name, the first one with the names of the others. Nothing: there is no such
/// run.
std::unique_ptr<RunFeed> feed_of(const Endpoint& endpoint,
                                 std::string_view query) {
  const auto wanted = query_value(query, "run");
  if (wanted.empty()) {
    std::vector<std::string> beside;
    for (std::size_t i = 1; i < endpoint.folders.size(); ++i)
      beside.push_back(endpoint.folders[i].name());
    return std::make_unique<RunFeed>(endpoint.folders.front(),
                                     std::move(beside));
  }
  for (std::size_t i = 1; i < endpoint.folders.size(); ++i)
    if (wanted == std::to_string(i))
      return std::make_unique<RunFeed>(endpoint.folders[i]);
  return nullptr;
}

/// Returns the name that the viewer knows this host by as a source of
/// WebSockets; empty: it is no plain name.
std::string own_host(const HttpRequest& request) {
  const auto host = field_of(request, http::field::host);
  const auto name = host.substr(0, host.rfind(':'));
  const bool is_plain = std::ranges::all_of(name, [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) || letter == '.'
           || letter == '-';
  });
  return is_plain && !name.empty() ? fmt::format(" ws://{}:*", name) : "";
}

/// Returns the page with a rule for the browser: it runs the page's own script,
/// which has the rule's nonce, and loads and connects to nothing but pages of
/// this host. What a model wrote is text; this holds even if some were not.
HttpResponse page_reply(const HttpRequest& request) {
  constexpr std::string_view script = "<script type=\"module\"";
  const auto nonce = random_hex(nonce_bytes);
  std::string page(trace_page());
  page.insert(page.find(script) + script.size(),
              fmt::format(" nonce=\"{}\"", nonce));
  auto reply
    = http_reply(request, http::status::ok, "text/html; charset=utf-8", page);
  reply.set("Content-Security-Policy",
            fmt::format("default-src 'none'; script-src 'nonce-{}'; style-src "
                        "'unsafe-inline'; img-src data: blob:; connect-src "
                        "'self'{} ws://127.0.0.1:* ws://localhost:*; "
                        "base-uri 'none'; form-action 'none'; "
                        "frame-ancestors 'none'",
                        nonce, own_host(request)));
  return reply;
}

/// Responds with the page, or upgrades to a WebSocket.
std::optional<HttpResponse>
visit(const std::shared_ptr<const Endpoint>& endpoint,
      const HttpRequest& request, tcp::socket& socket) {
  const auto path = path_of(request);
  const auto port = socket.local_endpoint().port();
  if (const auto why = endpoint->access.refuse(request, port); !why.empty())
    return http_reply(request, http::status::forbidden, "text/plain", why);
  if (boost::beast::websocket::is_upgrade(request) && path == "/events") {
    auto feed = feed_of(*endpoint, query_of(request));
    if (!feed)
      return http_reply(request, http::status::not_found, "text/plain",
                        "no such run");
    std::make_shared<WatchSession>(
      std::move(socket), std::move(feed),
      std::shared_ptr<const std::atomic<bool>>(endpoint, &endpoint->closing))
      ->start(request);
    return std::nullopt;
  }
  if (request.method() == http::verb::get && path == "/") {
    auto page = page_reply(request);
    page.set(http::field::set_cookie, endpoint->access.cookie(port));
    page.set("Referrer-Policy", "no-referrer");
    return page;
  }
  return http_reply(request, http::status::not_found, "text/plain",
                    "there is the page / and nothing else");
}

TraceServerOptions with_token(TraceServerOptions options) {
  if (options.token.empty())
    options.token = random_hex(defaults::token_bytes);
  return options;
}

} // namespace

struct TraceServer::Impl {
  Impl(const RunFolder& folder, TraceServerOptions wanted)
    : options(with_token(std::move(wanted))),
      endpoint(std::make_shared<Endpoint>(folder, options)),
      server("trace page", options.address, options.port,
             [endpoint = std::shared_ptr<const Endpoint>(endpoint)](
               const HttpRequest& request, tcp::socket& socket) {
               return visit(endpoint, request, socket);
             }) {
    options.port = server.port();
  }
  ~Impl() {
    endpoint->closing = true;
  }

  TraceServerOptions options;
  std::shared_ptr<Endpoint> endpoint;
  HttpServer server;
  std::optional<TemporaryFolder> link; ///< that the browser was given
};

TraceServerOptions page_options(const std::string& bind, std::uint16_t port) {
  TraceServerOptions options;
  options.port = port;
  if (bind.empty() || bind == "auto" || is_loopback(bind))
    return options;
  options.address = bind;
  return options;
}

TraceServer::TraceServer(const RunFolder& folder, TraceServerOptions options)
  : impl_(std::make_unique<Impl>(folder, std::move(options))) {}

TraceServer::~TraceServer() = default;

std::string TraceServer::address() const {
  return fmt::format("http://{}:{}/", impl_->options.address,
                     impl_->options.port);
}

const std::string& TraceServer::token() const {
  return impl_->options.token;
}

std::string TraceServer::url() const {
  return address() + token_query(token());
}

/// Gives the browser a file that leads to the page: all users can see the
/// arguments of a program.
void TraceServer::open_in_browser() {
  try {
    if (!impl_->link)
      impl_->link.emplace(std::filesystem::temp_directory_path(),
                          "troupe-page-");
    const auto link = impl_->link->path() / "page.html";
    replace_private_file(
      link, fmt::format("<meta http-equiv=\"refresh\" content=\"0;url={}\">\n",
                        url()));
    net::ChildSpec browser;
    browser.name = "browser";
    browser.argv = {"xdg-open", link.string()};
    net::start_detached(browser);
  } catch (const FailureError& error) {
    log::runtime.warn("cannot open a browser: " + error.failure().what);
  } catch (const std::system_error& error) {
    log::runtime.warn(std::string("cannot open a browser: ") + error.what());
  }
}

} // namespace troupe::runtime
