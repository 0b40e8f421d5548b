// Graph capture by CUDA graphs: captured on a stream of its own, replayed on
// the default stream like every kernel. Written against the documented
// behaviour of libtorch and CUDA; it has not run on a GPU yet.
#pragma once

#include "models/kernels/graph_capture.hpp"

#include <memory>

namespace c10 {
struct Device;
} // namespace c10

namespace troupe::models {

/// Returns a recorder for the device; null in a build without CUDA.
std::unique_ptr<GraphRecorder> gpu_recorder(c10::Device device);

} // namespace troupe::models
