// The address of an HTTP server, plain or over TLS, split into its parts.
#pragma once

#include <optional>
#include <string>
#include <utility> // missing in Asio 1.74, which users of addresses include

namespace troupe {

struct HttpUrl {
  std::string host;    ///< without brackets if an IPv6 address
  std::string port;    ///< default "80", of https "443"
  std::string target;  ///< default "/"
  bool secure = false; ///< https
};

/// Parses http[s]://HOST[:PORT][/PATH]; nullopt for anything else.
std::optional<HttpUrl> parse_http_url(const std::string& text);

} // namespace troupe
