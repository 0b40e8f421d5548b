// Planes that come and go beside kernels, and staged blocks, on pretended GPUs
// (docs/gpu_tests.md) under seeded orders of streams.
#include "models/gpu/gpu.hpp"
#include "models/gpu/gpu_memory.hpp"
#include "models/kernels/backend.hpp"
#include "models/parallel/plane_memory.hpp"
#include "net/base/staged_copy.hpp"

#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace troupe::models {
namespace {

constexpr std::int64_t count = 1 << 20;
constexpr std::size_t half_bytes = std::size_t{1} << 18;
constexpr std::uint64_t num_seeds = 20;

template <class Function>
Function standin(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

class PlaneCopies : public ::testing::Test {
protected:
  void SetUp() override {
    if (::dlsym(RTLD_DEFAULT, "standin_begin") == nullptr)
      GTEST_SKIP() << "no GPU: not under tests/gpu/standin.sh";
    at::globalContext().lazyInitDevice(at::kCUDA);
    gpu_backend(0).enter(); // other tests left this thread with another GPU
  }
  template <class Case>
  static void under_every_seed(const Case& run) {
    for (std::uint64_t seed = 1; seed <= num_seeds; ++seed) {
      SCOPED_TRACE(seed);
      standin<void (*)(std::uint64_t)>("standin_begin")(seed);
      run();
      ASSERT_FALSE(::testing::Test::HasFailure());
      ASSERT_EQ(standin<long (*)()>("standin_faults")(), 0)
        << standin<const char* (*)()>("standin_fault")();
    }
  }
  static at::Tensor numbers_of(PlaneMemory& plane) {
    return at::from_blob(
      plane.data(), {count},
      at::TensorOptions(at::Device(at::kCUDA, 0)).dtype(at::kFloat));
  }
  static std::span<std::byte> bytes_of(PlaneMemory& plane) {
    return {reinterpret_cast<std::byte*>(plane.data()), plane.size_bytes()};
  }
  static std::vector<float> read(PlaneMemory& plane) {
    std::vector<float> found(count);
    gpu_memory().read(plane.data(), found.data(), plane.size_bytes());
    return found;
  }
};

TEST_F(PlaneCopies, AreOrderedWithKernelsOfTheirAndOtherPlanes_I8) {
  under_every_seed([] {
    PlaneMemory plane(count, &gpu_memory(), {});
    for (int round = 1; round <= 3; ++round) {
      numbers_of(plane).add_(1);
      plane.changed();
      plane.offload();
      PlaneMemory other(count, &gpu_memory(), {});
      numbers_of(other).fill_(77); // where the plane was
      const auto* host
        = reinterpret_cast<const float*>(plane.published().data());
      EXPECT_EQ(host[count - 1], static_cast<float>(round));
      plane.reload();
    }
    numbers_of(plane).add_(1);
    EXPECT_EQ(read(plane), std::vector<float>(count, 4));
  });
}

TEST_F(PlaneCopies, OfStagedBlocksAreOrderedWithKernels_I8) {
  std::vector<float> numbers(count);
  under_every_seed([&] {
    PlaneMemory plane(count, &gpu_memory(), {});
    numbers_of(plane).fill_(9);
    auto* const host = reinterpret_cast<std::byte*>(numbers.data());
    net::read_block(gpu_memory(), bytes_of(plane), host, half_bytes);
    EXPECT_EQ(numbers, std::vector<float>(count, 9));
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    numbers_of(plane).fill_(10);
    net::write_block(gpu_memory(), host, bytes_of(plane), half_bytes);
    numbers_of(plane).add_(1);
    for (float& number : numbers)
      ++number;
    EXPECT_EQ(read(plane), numbers);
  });
}

TEST_F(PlaneCopies, LeaveTheMemoryOfTheGpuFree) {
  const auto taken = standin<std::size_t (*)(int)>("standin_taken");
  c10::DeviceAllocator& allocator = *c10::getDeviceAllocator(at::kCUDA);
  allocator.emptyCache();
  const std::size_t before = taken(0);
  PlaneMemory plane(count, &gpu_memory(), {});
  EXPECT_GE(taken(0), before + plane.size_bytes());
  plane.offload();
  allocator.emptyCache();
  EXPECT_EQ(taken(0), before);
}

} // namespace
} // namespace troupe::models
