// The host's own kernels behind Compute: done when they return.
#pragma once

#include "models/compute.hpp"

namespace troupe::models {

/// Uses compute_threads() threads. One serves all.
Compute& host_compute();

} // namespace troupe::models
