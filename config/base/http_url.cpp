#include "config/base/http_url.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {

namespace {

bool is_port(std::string_view text) {
  constexpr std::size_t most_digits = 5;
  constexpr int most = 65535;
  return !text.empty() && text.size() <= most_digits
         && std::ranges::all_of(text,
                                [](char c) { return c >= '0' && c <= '9'; })
         && std::stoi(std::string(text)) >= 1
         && std::stoi(std::string(text)) <= most;
}

} // namespace

std::optional<HttpUrl> parse_http_url(const std::string& text) {
  constexpr std::string_view plain = "http://";
  constexpr std::string_view over_tls = "https://";
  const bool secure = text.starts_with(over_tls);
  if (!(secure || text.starts_with(plain))
      || text.find_first_of(" \t\r\n") != text.npos)
    return std::nullopt;
  const auto rest = text.substr(secure ? over_tls.size() : plain.size());
  const auto slash = std::min(rest.find_first_of("/?"), rest.size());
  auto host = rest.substr(0, slash);
  HttpUrl url{.host = {},
              .port = secure ? "443" : "80",
              .target = rest.substr(slash),
              .secure = secure};
  if (!url.target.starts_with('/'))
    url.target.insert(0, "/");
  const auto colon = host.rfind(':');
  if (colon != host.npos && host.find(']', colon) == host.npos) {
    url.port = host.substr(colon + 1);
    host.resize(colon);
  }
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  url.host = host;
  if (url.host.empty() || !is_port(url.port))
    return std::nullopt;
  return url;
}

} // namespace troupe
