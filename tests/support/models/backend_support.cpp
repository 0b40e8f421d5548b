#include "backend_support.hpp"

#include "models/gpu/aten_backend.hpp"
#include "models/gpu/gpu.hpp"
#include "models/gpu/own_kernels.hpp"
#include "models/kernels/host_backend.hpp"
#include "net/base/gpus.hpp"
#include "net/collectives/staged_collectives.hpp"

#include <gtest/gtest.h>

#include "deferred_backend.hpp"
#include "replaying_recorder.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::testing {

namespace {

std::string asked() {
  const char* name = std::getenv("TROUPE_TEST_COMPUTE");
  return name == nullptr ? "host" : name;
}

/// Skips all tests of a program that requires a GPU if there is none.
class NeedsGpu final : public ::testing::Environment {
public:
  void SetUp() override {
    const auto gpus = net::find_gpus();
    if (asked() == "gpu" && gpus.names.empty())
      GTEST_SKIP() << "no GPU: " << gpus.why_none;
  }
};
const auto* const needs_gpu
  = ::testing::AddGlobalTestEnvironment(new NeedsGpu); // deleted by gtest

} // namespace

models::Backend& unrecorded_backend_under_test() {
  static models::AtenBackend aten(at::kCPU, {.bf16_storage = DType::bf16,
                                             .own_kernels = true,
                                             .grouped_products = true});
  if (asked() == "aten")
    return aten;
  if (asked() != "gpu")
    return models::host_backend();
  constexpr int first_with_flash = 8; // as models/gpu/gpu.cpp
  static models::AtenBackend gpu(
    at::Device(at::kCUDA, 0),
    {.memory = models::gpu_backend(0).memory(),
     .flash = net::find_gpus().generations.at(0) >= first_with_flash
                ? &models::aten_flash()
                : nullptr,
     .bf16_storage = DType::bf16,
     .own_kernels = models::gpu::has_gpu_kernels(),
     .grouped_products
     = models::has_grouped_products(net::find_gpus().generations.at(0))});
  return gpu;
}

models::Backend& backend_under_test() {
  static models::AtenBackend aten(at::kCPU,
                                  {.new_recorder = &ReplayingRecorder::make,
                                   .bf16_storage = DType::bf16,
                                   .own_kernels = true,
                                   .grouped_products = true});
  if (asked() == "host")
    return models::host_backend();
  if (asked() == "aten")
    return aten;
  if (asked() == "late")
    return DeferredBackend::instance();
  if (asked() == "gpu")
    return models::gpu_backend(0);
  throw std::runtime_error("TROUPE_TEST_COMPUTE: host, aten, late or gpu, not "
                           + asked());
}

const net::BlockMemory& device_memory() {
  const net::BlockMemory* memory = backend_under_test().memory();
  return memory != nullptr ? *memory : *DeferredBackend::instance().memory();
}

std::shared_ptr<net::Collectives>
over_device(std::shared_ptr<net::Collectives> host) {
  return net::make_staged_collectives(std::move(host), device_memory());
}

} // namespace troupe::testing
