// An address of a server that speaks plain HTTP, in its parts.
#pragma once

#include <optional>
#include <string>

namespace troupe {

struct HttpUrl {
  std::string host;   ///< without brackets, where it is an IPv6 address
  std::string port;   ///< "80" where none was given
  std::string target; ///< "/" where none was given
};

/// Nothing unless `text` is http://HOST[:PORT][/PATH].
std::optional<HttpUrl> parse_http_url(const std::string& text);

} // namespace troupe
