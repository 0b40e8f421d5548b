// The server of a kind: the only place that knows all kinds.
#pragma once

#include "models/servers/generation_server.hpp"

#include <memory>

namespace troupe::models {

/// Returns the server that `spec.kind` names; nothing is started yet.
std::unique_ptr<GenerationServer> make_server(ServerSpec spec);

} // namespace troupe::models
