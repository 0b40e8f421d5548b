#include "runtime/page/page_access.hpp"

#include "config/base/atomic_file.hpp"
#include "net/base/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string_view>

namespace troupe::runtime {

namespace {

namespace http = boost::beast::http;

constexpr std::string_view token_name = "token";

std::string cookie_name(std::uint16_t port) {
  return fmt::format("troupe_{}", port);
}

/// Returns the value of a name in "a=1; b=2", or nothing.
std::string value_of(std::string_view text, char separator,
                     std::string_view name) {
  while (!text.empty()) {
    auto part = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    part.remove_prefix(std::min(part.size(), part.find_first_not_of(' ')));
    if (part.starts_with(name) && part.substr(name.size()).starts_with('='))
      return std::string(part.substr(name.size() + 1));
  }
  return "";
}

std::string_view without_port(std::string_view host) {
  const auto colon = host.rfind(':');
  return colon == std::string_view::npos || host.ends_with(']')
           ? host
           : host.substr(0, colon);
}

bool is_loopback_name(std::string_view name) {
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

/// Returns whether `origin` is a page of the same host, at another port: it may
/// compare its run with this one, if it knows this page's token.
bool is_page_beside(std::string_view origin, std::string_view host) {
  constexpr std::string_view scheme = "http://";
  if (!origin.starts_with(scheme))
    return false;
  const auto name = without_port(origin.substr(scheme.size()));
  const auto own = without_port(host);
  return name == own || (is_loopback_name(name) && is_loopback_name(own));
}

} // namespace

std::string PageAccess::refuse(const HttpRequest& request,
                               std::uint16_t port) const {
  const auto origin = field_of(request, http::field::origin);
  const auto host = field_of(request, http::field::host);
  const bool is_own = origin.empty() || origin == "http://" + std::string(host);
  if (!is_own
      && !(is_page_beside(origin, host) && path_of(request) == "/events"))
    return "this page belongs to another site";
  const auto query = query_of(request);
  const auto cookies = field_of(request, http::field::cookie);
  if (net::same_token(value_of(query, '&', token_name), token_)
      || (is_own
          && net::same_token(value_of(cookies, ';', cookie_name(port)),
                             token_)))
    return "";
  return "the address needs the page's ?token=..; `troupe status RUN` prints "
         "it";
}

std::string PageAccess::cookie(std::uint16_t port) const {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict",
                     cookie_name(port), token_);
}

std::string token_query(const std::string& token) {
  return fmt::format("?{}={}", token_name, token);
}

void write_page_token(const RunFolder& folder, const std::string& token) {
  replace_private_file(folder.page_token_file(), token + "\n");
}

std::string address_with_token(const RunFolder& folder,
                               const std::string& address) {
  std::ifstream file(folder.page_token_file());
  std::string token;
  if (address.empty() || !std::getline(file, token) || token.empty())
    return address;
  return address + token_query(token);
}

} // namespace troupe::runtime
