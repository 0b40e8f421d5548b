// Recordings as CUDA graphs: noted on a stream that is there for that, run on
// the default one like every kernel. Written against what libtorch and CUDA
// promise; it has not run on a GPU yet.
#pragma once

#include "models/recording.hpp"

#include <memory>

namespace c10 {
struct Device;
} // namespace c10

namespace troupe::models {

/// Null in a build without CUDA.
std::unique_ptr<Recorder> gpu_recorder(c10::Device device);

} // namespace troupe::models
