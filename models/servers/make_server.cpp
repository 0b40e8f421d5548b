#include "models/servers/make_server.hpp"

#include "models/servers/sglang_server.hpp"
#include "models/servers/vllm_server.hpp"

#include <utility>

namespace troupe::models {

std::unique_ptr<GenerationServer> make_server(ServerSpec spec) {
  if (spec.kind == ServerKind::sglang)
    return std::make_unique<SglangServer>(std::move(spec));
  return std::make_unique<VllmServer>(std::move(spec));
}

} // namespace troupe::models
