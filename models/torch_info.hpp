// Which libtorch and which CPU kernels this process computes with.
#pragma once

#include <string>

namespace troupe::models {

/// "libtorch 2.11.0"
std::string torch_info();
/// "AVX512": the vector instructions that libtorch chose.
std::string cpu_info();

} // namespace troupe::models
