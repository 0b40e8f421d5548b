// Copies between GPUs and the host beside kernels: a stream of each GPU for
// each direction, ordered by events with the default stream, on which kernels
// run. libtorch's allocator keeps memory that such a copy still uses.
#pragma once

#include "net/base/copy_stream.hpp"

namespace troupe::models {

/// Returns null in a build without CUDA.
const net::CopyStream* gpu_copies();

} // namespace troupe::models
