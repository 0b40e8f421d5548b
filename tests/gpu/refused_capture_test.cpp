// A capture that CUDA refuses, on pretended GPUs (docs/gpu_tests.md):
// libtorch's allocator is usable after it, and so is the next capture of the
// same pool. Tensor peers of whom one is refused launch all kernels one by one.
#include "models/generate/generate_options.hpp"
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/flash_attention.hpp"
#include "models/gpu/gpu_graph_recorder.hpp"
#include "models/gpu/own_kernels.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/pretended_gpus.hpp"
#include <dlfcn.h>

#include <memory>

namespace troupe::models {
namespace {

using troupe::testing::ParallelReplica;
using troupe::testing::pretended_gpus;
using troupe::testing::ReplicaDevices;

/// Waits for the device, which ends a capture in any mode.
void wait_for_device() {
  const auto wait = reinterpret_cast<int (*)()>(
    ::dlsym(RTLD_DEFAULT, "cudaDeviceSynchronize"));
  const auto clear
    = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "cudaGetLastError"));
  EXPECT_NE(wait(), 0);
  clear();
}

long graph_launches() {
  const auto launches = reinterpret_cast<long (*)(const char*)>(
    ::dlsym(RTLD_DEFAULT, "standin_launches"));
  return launches("cudaGraphLaunch");
}

/// Captures on a GPU that refuses all kernels.
class RefusedRecorder final : public GraphRecorder {
public:
  static std::unique_ptr<GraphRecorder> make(at::Device device) {
    return std::make_unique<RefusedRecorder>(device);
  }
  explicit RefusedRecorder(at::Device device)
    : recorder_(gpu_recorder(device)) {}

  std::unique_ptr<GraphCapture>
  record(const std::function<void()>& kernels) override {
    return recorder_->record([&] {
      wait_for_device();
      kernels();
    });
  }

private:
  std::unique_ptr<GraphRecorder> recorder_;
};

class RefusedCapture : public ::testing::Test {
protected:
  void SetUp() override {
    if (::dlsym(RTLD_DEFAULT, "standin_begin") == nullptr)
      GTEST_SKIP() << "no GPU: not under tests/gpu/standin.sh";
    at::globalContext().lazyInitDevice(at::kCUDA);
    recorder_ = gpu_recorder(device_);
  }
  at::Tensor numbers() const {
    return at::empty({1 << 20}, at::TensorOptions(device_));
  }
  void expect_usable() {
    c10::getDeviceAllocator(at::kCUDA)->emptyCache();
    at::Tensor kept = numbers();
    const auto captured = recorder_->record([&] { kept.zero_(); });
    ASSERT_NE(captured, nullptr);
    captured->run();
    EXPECT_EQ(kept.sum().item<float>(), 0);
  }

  /// Returns responses of two tensor peers.
  static net::Rows generate(const ReplicaDevices& devices) {
    const troupe::testing::TempFolder folder;
    const auto model = folder / "model";
    troupe::testing::write_random_model(model, troupe::testing::wide_shape(),
                                        1);
    ParallelReplica peers(troupe::testing::trained_actor(model), "t2", devices);
    return peers.generate(troupe::testing::random_prompts(75),
                          {.max_new_tokens = 6, .seed = 5, .max_sequences = 4});
  }

  const at::Device device_{at::kCUDA, 0};
  std::unique_ptr<GraphRecorder> recorder_;
};

TEST_F(RefusedCapture, OfKernelsThatThrowLeavesTheAllocatorUsable) {
  EXPECT_EQ(recorder_->record([&] {
    static_cast<void>(numbers().sum().item<float>()); // the host waits
  }),
            nullptr);
  expect_usable();
}

TEST_F(RefusedCapture, ThatIsFoundAtItsEndLeavesTheAllocatorUsable) {
  at::Tensor kept = numbers();
  EXPECT_EQ(recorder_->record([&] {
    kept.copy_(numbers());
    wait_for_device();
  }),
            nullptr);
  expect_usable();
}

TEST_F(RefusedCapture, DoesNotEndGraphsOfItsPool) {
  at::Tensor kept = numbers();
  const auto captured = recorder_->record([&] { kept.fill_(3); });
  ASSERT_NE(captured, nullptr);
  EXPECT_EQ(recorder_->record([] { wait_for_device(); }), nullptr);
  captured->run();
  EXPECT_EQ(kept.max().item<float>(), 3);
  expect_usable();
}

TEST_F(RefusedCapture, OfOneTensorPeerMakesBothLaunchAllKernels_I1) {
  AtenBackend refusing(at::Device(at::kCUDA, 1),
                       {.memory = &gpu_memory(),
                        .flash = &aten_flash(),
                        .new_recorder = &RefusedRecorder::make,
                        .bf16_storage = DType::bf16,
                        .own_kernels = gpu::has_gpu_kernels()});
  ReplicaDevices devices = pretended_gpus();
  devices.backend = [&](std::uint32_t device) -> Backend& {
    return device == 1 ? refusing : gpu_backend(device);
  };
  const long before = graph_launches();
  const net::Rows single = generate(devices);
  EXPECT_EQ(graph_launches(), before);
  troupe::testing::expect_same_responses(single, generate(pretended_gpus()));
  EXPECT_GT(graph_launches(), before);
}

} // namespace
} // namespace troupe::models
