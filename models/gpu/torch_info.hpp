// Names the libtorch and the CPU kernels that this process computes with.
#pragma once

#include <string>

namespace troupe::models {

/// Returns the version: "libtorch 2.11.0".
std::string torch_info();
/// Returns the vector instructions that libtorch chose: "AVX512".
std::string cpu_info();

} // namespace troupe::models
