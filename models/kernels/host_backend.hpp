// The host's own kernels as a Backend: each is done when its call returns.
#pragma once

#include "models/kernels/backend.hpp"

namespace troupe::models {

/// Returns the one instance for all devices. Uses compute_threads() threads.
Backend& host_backend();

} // namespace troupe::models
