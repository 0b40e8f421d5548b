// Which Compute a test runs on: TROUPE_TEST_COMPUTE is host (default), aten
// (libtorch's operations on the CPU), late (late_compute.hpp) or gpu. ctest
// runs the golden tests once more on aten, late and, in a CUDA build, gpu.
#pragma once

#include "models/compute.hpp"

namespace troupe::testing {

models::Compute& compute_under_test();

} // namespace troupe::testing
