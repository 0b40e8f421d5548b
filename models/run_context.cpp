#include "models/run_context.hpp"

#include "config/error.hpp"

namespace troupe::models {

void RunContext::check() const {
  made_progress();
  if (stop_requested())
    throw FailureError(Failure{Errc::aborted, "engine",
                               "stopped in step " + to_string(step), ""});
}

} // namespace troupe::models
