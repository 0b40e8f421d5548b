// GPUs and their memory over a stand-in for CUDA's runtime
// (tests/support/cuda/fake_cudart.cpp): what is refused, which device a thread
// uses, and what waits for kernels. No GPU is needed or used.
#include "config/base/error.hpp"
#include "net/base/gpu_handles.hpp"
#include "net/base/gpus.hpp"
#include "net/base/library_file.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <span>
#include <thread>
#include <vector>

namespace troupe::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t fake_total = std::size_t{64} << 20;
constexpr std::size_t fake_block = std::size_t{1} << 20;

/// Functions of the stand-in beside the driver's.
struct FakeDriver {
  void (*kernel)(void* data) = nullptr;
  int (*faults)() = nullptr;
  int (*has_context)(int device) = nullptr;
  int (*opened)() = nullptr;
  void (*begin)(int count_result) = nullptr;

  FakeDriver() {
    LibraryFile file(TROUPE_FAKE_CUDART);
    file.find("fake_cuda_kernel", kernel);
    file.find("fake_cuda_faults", faults);
    file.find("fake_cuda_has_context", has_context);
    file.find("fake_cuda_opened", opened);
    file.find("fake_cuda_begin", begin);
  }
};

/// The stand-in's own allocator, in libtorch's place.
struct FakeMalloc {
  int (*take)(void** data, std::size_t size_bytes) = nullptr;
  int (*give)(void* data) = nullptr;

  static const FakeMalloc& instance() {
    static const FakeMalloc found = [] {
      FakeMalloc functions;
      LibraryFile file(TROUPE_FAKE_CUDART);
      file.find("cudaMalloc", functions.take);
      file.find("cudaFree", functions.give);
      return functions;
    }();
    return found;
  }
};
constexpr GpuAllocator fake_allocator{
  [](std::size_t size_bytes) {
    void* data = nullptr;
    FakeMalloc::instance().take(&data, size_bytes);
    return data;
  },
  [](void* data) { FakeMalloc::instance().give(data); }};

class Gpus : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(cuda_.why_not, "");
    driver_.begin(0);
  }
  /// Returns a block of the current device.
  void* take(std::size_t size_bytes) {
    return take_gpu_memory(cuda_, fake_allocator, size_bytes);
  }
  static void give(void* data) {
    give_gpu_memory(fake_allocator, data);
  }
  /// Runs on a thread whose device is `device`.
  template <class Work>
  void on_device(int device, const Work& work) {
    std::thread([&] {
      cuda_.set_device(device);
      work();
    }).join();
  }

  FakeDriver driver_;
  const CudaRuntime cuda_ = CudaRuntime::open(TROUPE_FAKE_CUDART);
};

TEST_F(Gpus, AreDescribedByTheDriver) {
  const auto gpus = find_gpus(cuda_);
  EXPECT_THAT(gpus.names, ElementsAre("first", "second"));
  EXPECT_THAT(gpus.generations, ElementsAre(9, 9));
  EXPECT_THAT(gpus.memory_bytes, ElementsAre(fake_total, fake_total));
  EXPECT_NE(gpus.ids[0], gpus.ids[1]);
  EXPECT_EQ(gpus.driver, "CUDA 13.0");
  EXPECT_FALSE(gpus.is_refused);
}

TEST_F(Gpus, AreRefusedIfTheirDriverFails) {
  constexpr int insufficient_driver = 35;
  driver_.begin(insufficient_driver);
  EXPECT_TRUE(find_gpus(cuda_).is_refused);
  EXPECT_EQ(cuda_.clear_error(), 0) << "the next kernel launch would report it";
  constexpr int no_device = 100;
  driver_.begin(no_device);
  EXPECT_FALSE(find_gpus(cuda_).is_refused);
}

TEST_F(Gpus, ABlockIsZeroedByTheDevice) {
  void* const data = take(fake_block);
  const std::span bytes(static_cast<const char*>(data), fake_block);
  EXPECT_TRUE(std::ranges::all_of(bytes, [](char b) { return b == 0; }));
  give(data);
}

TEST_F(Gpus, ABlockBeyondWhatIsFreeIsRefused) {
  void* const first = take(fake_total / 2);
  try {
    take(fake_total);
    FAIL() << "there is half of it";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::out_of_memory);
    EXPECT_EQ(error.failure().who, "gpu 0");
    EXPECT_EQ(error.failure().what, "a block of 0.067 GB does not fit: 0.034 "
                                    "GB are free of 0.067 GB");
  }
  give(first);
  give(take(fake_total));
}

TEST_F(Gpus, AThreadUsesItsOwnDeviceOnly) {
  on_device(1, [&] {
    void* const data = take(fake_block);
    int value = 1;
    write_gpu_memory(cuda_, &value, data, sizeof value);
    read_gpu_memory(cuda_, data, &value, sizeof value);
    give(data);
  });
  EXPECT_TRUE(driver_.has_context(1));
  EXPECT_FALSE(driver_.has_context(0)) << "half a gigabyte for nothing";
}

TEST_F(Gpus, CopiesAreOfTheStreamOfTheBlocksDevice) {
  void* block = nullptr;
  void* other = nullptr;
  on_device(1, [&] {
    block = take(fake_block);
    other = take(fake_block);
    driver_.kernel(block);
  });
  int value = 7;
  write_gpu_memory(cuda_, &value, block, sizeof value);
  on_device(1, [&] { driver_.kernel(other); });
  const ByteRuns whole{.bytes = sizeof value};
  copy_gpu_memory(cuda_, block, other, {&whole, 1});
  value = 0;
  read_gpu_memory(cuda_, other, &value, sizeof value);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(driver_.faults(), 0);
  int current = -1;
  cuda_.get_device(&current);
  EXPECT_EQ(current, 0) << "of this thread";
  give(block);
  give(other);
}

TEST_F(Gpus, RunsAreCopiedBetweenDevices) {
  auto* source = static_cast<std::byte*>(take(fake_block));
  std::byte* target = nullptr;
  on_device(1, [&] { target = static_cast<std::byte*>(take(fake_block)); });
  std::vector<std::byte> numbers(fake_block);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<std::byte>(i % 251);
  write_gpu_memory(cuda_, numbers.data(), source, fake_block);
  const std::vector<ByteRuns> runs
    = {{.source_offset = 5, .target_offset = 1, .bytes = 3},
       {.source_offset = 100,
        .target_offset = 50,
        .bytes = 7,
        .runs = 9,
        .source_stride = 30,
        .target_stride = 8},
       {.source_offset = 900, .target_offset = 200, .bytes = 2}};
  copy_gpu_memory(cuda_, source, target, runs);
  std::vector<std::byte> expected(fake_block), got(fake_block);
  for (const ByteRuns& part : runs)
    copy_runs(part, numbers.data(), expected.data());
  read_gpu_memory(cuda_, target, got.data(), fake_block);
  EXPECT_TRUE(got == expected);
  copy_gpu_memory(cuda_, target, numbers.data(), runs); // to the host
  EXPECT_EQ(numbers[1], got[5]);
  give(source);
  give(target);
}

TEST_F(Gpus, ABlockIsMappedWhereItsGpuIsSeen) {
  std::byte* block = nullptr;
  on_device(1, [&] { block = static_cast<std::byte*>(take(fake_block)); });
  auto place = share_gpu_memory(cuda_, block + 4096);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->offset, 4096U) << "libtorch cuts blocks from large ones";
  const void* mapped = map_gpu_memory(cuda_, *place);
  EXPECT_EQ(mapped, block + 4096);
  EXPECT_EQ(driver_.opened(), 1);
  unmap_gpu_memory(cuda_, mapped, *place);
  EXPECT_EQ(driver_.opened(), 0);
  place->device = {7, 7, 7, 7};
  EXPECT_EQ(map_gpu_memory(cuda_, *place), nullptr) << "another host's";
  EXPECT_FALSE(share_gpu_memory(cuda_, this)) << "not of a GPU";
  give(block);
  place->device = find_gpus(cuda_).ids[1];
  EXPECT_EQ(map_gpu_memory(cuda_, *place), nullptr) << "it is gone";
  EXPECT_EQ(cuda_.clear_error(), 0) << "the next kernel launch would report it";
}

TEST_F(Gpus, AnAddressWithinABlockIsKnown) {
  auto* block = static_cast<std::byte*>(take(fake_block));
  EXPECT_EQ(gpu_of_memory(block + fake_block - 1), 0);
  EXPECT_EQ(gpu_of_memory(block + fake_block), -1);
  EXPECT_EQ(gpu_of_memory(this), -1);
  give(block);
  EXPECT_EQ(gpu_of_memory(block), -1);
}

TEST(CudaRuntime, NamesWhatIsMissing) {
  EXPECT_THAT(CudaRuntime::open("libnone.so").why_not, HasSubstr("libnone.so"));
  EXPECT_THAT(CudaRuntime::open("libc.so.6").why_not,
              HasSubstr("cudaDriverGetVersion"));
}

} // namespace
} // namespace troupe::net
