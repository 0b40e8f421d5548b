// A capture that CUDA refuses, on pretended GPUs (docs/gpu_tests.md):
// libtorch's allocator is usable after it, and so is the next capture of the
// same pool.
#include "models/gpu/gpu_graph_recorder.hpp"
#include "net/base/gpus.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <memory>

namespace troupe::models {
namespace {

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
  /// Waits for the device, which ends a capture in any mode.
  static void wait_for_device() {
    const auto wait = reinterpret_cast<int (*)()>(
      ::dlsym(RTLD_DEFAULT, "cudaDeviceSynchronize"));
    const auto clear
      = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "cudaGetLastError"));
    EXPECT_NE(wait(), 0);
    clear();
  }
  void expect_usable() {
    c10::getDeviceAllocator(at::kCUDA)->emptyCache();
    at::Tensor kept = numbers();
    const auto captured = recorder_->record([&] { kept.zero_(); });
    ASSERT_NE(captured, nullptr);
    captured->run();
    EXPECT_EQ(kept.sum().item<float>(), 0);
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

} // namespace
} // namespace troupe::models
