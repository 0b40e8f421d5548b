// How the weights of a device reach its server (`rollout.weights_over`): in the
// device's memory, by an offer over TCP at the address of this host that the
// server reaches, or by NCCL from the device's GPU.
#pragma once

#include "config/settings/settings.hpp"
#include "models/servers/weight_broadcast.hpp"
#include "net/transport/byte_offer.hpp"

#include <optional>
#include <string>

namespace troupe::actors {

/// A server as this host sees it.
struct ServerPlace {
  std::string name;        ///< its address in the settings, for messages
  bool is_other = false;   ///< known to be on another host
  std::string own_address; ///< of this host, towards it
};

/// Returns where `host` is. Throws FailureError (io) if there is no way to it
/// and weights go over TCP.
ServerPlace place_of_server(const Settings& settings, const std::string& name,
                            const std::string& host);

/// Returns how the weights are offered; nothing if they go another way. Throws
/// FailureError (bad_input) if the server is known to be unable to read them.
std::optional<net::ByteOfferSpec> weight_offer(const Settings& settings,
                                               const ServerPlace& server);

/// Returns how they are broadcast by NCCL from this GPU of the process; nothing
/// if they go another way.
std::optional<models::WeightBroadcastSpec>
weight_broadcast(const Settings& settings, int gpu);

} // namespace troupe::actors
