#include "models/gpu/torch_info.hpp"

#include <ATen/Version.h>
#include <torch/headeronly/version.h>

namespace troupe::models {

std::string torch_info() {
  return std::string("libtorch ") + TORCH_VERSION;
}

std::string cpu_info() {
  return at::get_cpu_capability();
}

} // namespace troupe::models
