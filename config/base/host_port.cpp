#include "config/base/host_port.hpp"

#include <charconv>

namespace troupe {

std::optional<HostPort> parse_host_port(std::string_view text) {
  HostPort parsed;
  const auto colon = text.rfind(':');
  if (colon == 0)
    return std::nullopt;
  if (colon != std::string_view::npos) {
    parsed.host = text.substr(0, colon);
    text.remove_prefix(colon + 1);
    if (parsed.host.starts_with('[') && parsed.host.ends_with(']'))
      parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  }
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, parsed.port);
  if (error != std::errc{} || end != last || parsed.port == 0)
    return std::nullopt;
  return parsed;
}

} // namespace troupe
