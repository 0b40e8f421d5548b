// `cluster.bind` and `cluster.ports` of a process: where it may listen, and the
// first port of the range that is free. All processes of a run share the range.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace troupe::runtime {

struct ListenPorts {
  std::string address = "127.0.0.1"; ///< loopback unless told otherwise
  std::uint16_t first = 0;           ///< 0: any free port
  std::uint16_t last = 0;
};

/// From `cluster.bind` (an address or auto) and `cluster.ports` (FIRST-LAST or
/// auto), or the worker's options of that name; ConfigError for the latter.
ListenPorts listen_ports(const std::string& bind, const std::string& ports);

/// Calls `listen` with each port in turn until it does not throw FailureError;
/// throws FailureError (io) that names address and range if all do.
void listen_on_first_free(const ListenPorts& where, const std::string& who,
                          const std::function<void(std::uint16_t)>& listen);

} // namespace troupe::runtime
