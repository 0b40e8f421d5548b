#include "compute_support.hpp"

#include "models/aten_compute.hpp"
#include "models/gpu.hpp"
#include "models/host_compute.hpp"
#include "net/gpus.hpp"

#include <gtest/gtest.h>

#include "again_recorder.hpp"
#include "late_compute.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace troupe::testing {

namespace {

std::string asked() {
  const char* name = std::getenv("TROUPE_TEST_COMPUTE");
  return name == nullptr ? "host" : name;
}

/// Skips all tests of a program that asks for a GPU where there is none.
class NeedsGpu final : public ::testing::Environment {
public:
  void SetUp() override {
    const auto gpus = net::find_gpus();
    if (asked() == "gpu" && gpus.names.empty())
      GTEST_SKIP() << "no GPU: " << gpus.why_none;
  }
};
const auto* const needs_gpu
  = ::testing::AddGlobalTestEnvironment(new NeedsGpu); // gtest deletes it

} // namespace

models::Compute& compute_under_test() {
  static models::AtenCompute aten(at::kCPU, nullptr, nullptr,
                                  &AgainRecorder::make);
  if (asked() == "host")
    return models::host_compute();
  if (asked() == "aten")
    return aten;
  if (asked() == "late")
    return LateCompute::instance();
  if (asked() == "gpu")
    return models::gpu_compute(0);
  throw std::runtime_error("TROUPE_TEST_COMPUTE: host, aten, late or gpu, not "
                           + asked());
}

} // namespace troupe::testing
