#include "models/parallel/run_context.hpp"

#include "config/base/error.hpp"
#include "net/collectives/collectives.hpp"

namespace troupe::models {

std::uint32_t Groups::stage() const {
  return pp == nullptr ? 0 : pp->rank();
}

std::uint32_t Groups::stages() const {
  return pp == nullptr ? 1 : pp->size();
}

void RunContext::check() const {
  made_progress();
  if (stop_requested())
    throw FailureError(
      Failure{Errc::aborted, "engine",
              "stopped in step " + std::to_string(step_number(step)), ""});
}

} // namespace troupe::models
