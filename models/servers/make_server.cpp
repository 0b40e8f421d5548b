#include "models/servers/make_server.hpp"

#include "models/servers/vllm_server.hpp"

#include <utility>

namespace troupe::models {

std::unique_ptr<GenerationServer> make_server(ServerSpec spec) {
  return std::make_unique<VllmServer>(std::move(spec));
}

} // namespace troupe::models
