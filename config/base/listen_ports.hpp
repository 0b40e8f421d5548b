// `cluster.bind` and `cluster.ports` of a process: the address and the port
// range on which it may listen, and the first free port of that range. All
// processes of a run share the range.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

struct ListenPorts {
  std::string address = "127.0.0.1"; ///< loopback by default
  std::uint16_t first = 0;           ///< 0: any free port
  std::uint16_t last = 0;
};

/// Parses `cluster.bind` (an address or auto) and `cluster.ports` (FIRST-LAST
/// or auto), or the worker's options of these names; throws ConfigError for the
/// latter.
ListenPorts listen_ports(const std::string& bind, const std::string& ports);

/// Calls `listen` with each port in turn until it does not throw FailureError;
/// throws FailureError (io) that names address and range if all do.
void listen_on_first_free(const ListenPorts& where, const std::string& who,
                          const std::function<void(std::uint16_t)>& listen);

} // namespace troupe
