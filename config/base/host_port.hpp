// "HOST:PORT" as settings and commands accept it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

struct HostPort {
  std::string host; ///< empty: only a port is given
  std::uint16_t port = 0;
};

/// Parses "9400", "0.0.0.0:9400" or "[::1]:9400"; the port, 1 to 65535, follows
/// the last colon.
std::optional<HostPort> parse_host_port(std::string_view text);

} // namespace troupe
