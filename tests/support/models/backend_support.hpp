// Selects the backend that a test runs on: TROUPE_TEST_COMPUTE is host
// (default), aten (libtorch's operations on the CPU), late
// (deferred_backend.hpp) or gpu. ctest runs the golden tests once more on aten,
// late and, in a CUDA build, gpu.
#pragma once

#include "models/kernels/backend.hpp"
#include "net/collectives/collectives.hpp"

#include <memory>

namespace troupe::testing {

models::Backend& backend_under_test();
/// Returns the same without graph capture: kernels are launched one by one.
models::Backend& unrecorded_backend_under_test();

/// Returns the memory of the devices that tests have, which the host may not be
/// able to address.
const net::BlockMemory& device_memory();

/// Returns the group for that memory.
std::shared_ptr<net::Collectives>
over_device(std::shared_ptr<net::Collectives> host);

} // namespace troupe::testing
