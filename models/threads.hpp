// How many threads one device computes with. One number a process, set first in
// main: libtorch takes it neither per thread nor for all (TOOLCHAIN 6 e).
#pragma once

namespace troupe::models {

void set_compute_threads(int num_threads);

} // namespace troupe::models
