// The stand-in for CUDA's runtime: order of streams, captures, memory, and what
// it finds. Runs under the preload of standin.sh.
#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>

#include "cuda/standin/standin.hpp"
#include <dlfcn.h>

#include <array>
#include <string>
#include <thread>

namespace {

constexpr int num_seeds = 20;

class Standin : public ::testing::Test {
protected:
  void SetUp() override {
    at::globalContext().lazyInitDevice(at::kCUDA);
    standin_begin(1);
    cudaGetLastError();
  }
};

class TwoStreams {
public:
  TwoStreams() {
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreate(&event);
    cudaMallocManaged(reinterpret_cast<void**>(&data), 2 * sizeof(int));
    data[0] = data[1] = 0;
  }
  ~TwoStreams() {
    cudaDeviceSynchronize();
    cudaFree(data);
    cudaEventDestroy(event);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
  }
  TwoStreams(const TwoStreams&) = delete;
  TwoStreams& operator=(const TwoStreams&) = delete;

  /// Writes on the first stream and copies on the second; returns what came.
  int write_and_copy(bool waits) {
    data[0] = data[1] = 0;
    cudaMemsetAsync(data, 1, sizeof(int), first);
    if (waits) {
      cudaEventRecord(event, first);
      cudaStreamWaitEvent(second, event, 0);
    }
    cudaMemcpyAsync(data + 1, data, sizeof(int), cudaMemcpyDefault, second);
    cudaStreamSynchronize(second);
    const int found = data[1];
    cudaStreamSynchronize(first);
    return found;
  }

  cudaStream_t first = nullptr;
  cudaStream_t second = nullptr;
  cudaEvent_t event = nullptr;
  int* data = nullptr;
};

constexpr int written = 0x01010101;

} // namespace

TEST_F(Standin, LibtorchSeesItsGpusAndCountsItsMemory) {
  EXPECT_EQ(c10::cuda::device_count(), 2);
  const auto before
    = c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0];
  const at::Tensor x = at::empty({1 << 20}, at::device(at::kCUDA));
  const auto after
    = c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0];
  EXPECT_EQ(after.current - before.current, 4 << 20);
  EXPECT_GE(standin_taken(0), std::size_t{4} << 20);
}

TEST_F(Standin, AMissingEventChangesWhatIsReadUnderSomeOrder) {
  TwoStreams streams;
  int right = 0;
  for (int seed = 0; seed < num_seeds; ++seed) {
    standin_begin(static_cast<std::uint64_t>(seed));
    right += static_cast<int>(streams.write_and_copy(false) == written);
  }
  EXPECT_GT(right, 0);
  EXPECT_LT(right, num_seeds);
}

TEST_F(Standin, AnEventKeepsTheOrderUnderEverySeed) {
  TwoStreams streams;
  for (int seed = 0; seed < num_seeds; ++seed) {
    standin_begin(static_cast<std::uint64_t>(seed));
    EXPECT_EQ(streams.write_and_copy(true), written);
  }
}

TEST_F(Standin, TheLegacyStreamWaitsForBlockingStreams) {
  cudaStream_t blocking = nullptr;
  cudaStreamCreate(&blocking);
  int* data = nullptr;
  cudaMallocManaged(reinterpret_cast<void**>(&data), 2 * sizeof(int));
  for (int seed = 0; seed < num_seeds; ++seed) {
    standin_begin(static_cast<std::uint64_t>(seed));
    data[0] = data[1] = 0;
    cudaMemsetAsync(data, 1, sizeof(int), blocking);
    cudaMemcpyAsync(data + 1, data, sizeof(int), cudaMemcpyDefault, nullptr);
    cudaMemsetAsync(data, 2, sizeof(int), blocking);
    cudaStreamSynchronize(nullptr);
    EXPECT_EQ(data[1], written);
  }
  cudaDeviceSynchronize();
  cudaFree(data);
  cudaStreamDestroy(blocking);
}

TEST_F(Standin, WorkOnFreedMemoryIsNamed) {
  void* data = nullptr;
  cudaMallocManaged(&data, 4096, cudaMemAttachGlobal);
  cudaMemsetAsync(data, 1, 4096, nullptr);
  cudaFree(data);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(standin_faults(), 1);
  EXPECT_EQ(std::string(standin_fault()),
            "cudaMemsetAsync uses a block of 4096 bytes of managed memory of "
            "GPU 0 that has been freed");
  cudaGetLastError();
}

TEST_F(Standin, WorkBeyondABlockIsNamed) {
  char* data = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&data), 100);
  cudaMemsetAsync(data + 50, 1, 51, nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_NE(std::string(standin_fault()).find("goes beyond"),
            std::string::npos);
  standin_begin(1);
  cudaGetLastError();
  cudaFree(data);
}

TEST_F(Standin, TheHostMayNotTouchMemoryOfAGpu) {
  char* data = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&data), 100);
  EXPECT_DEATH(*static_cast<volatile char*>(data) = 1,
               "the host touches a block of 100 bytes of memory of GPU 0");
  cudaFree(data);
}

TEST_F(Standin, AGpuHasItsMemoryAndNoMore) {
  std::size_t free = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free, &total);
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, free + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMallocManaged(&data, free + 1, cudaMemAttachGlobal),
            cudaSuccess);
  std::size_t then = 0;
  cudaMemGetInfo(&then, &total);
  EXPECT_EQ(then, 0);
  cudaMemPrefetchAsync(data, free + 1, {cudaMemLocationTypeHost, {0}}, 0,
                       nullptr);
  cudaDeviceSynchronize();
  cudaMemGetInfo(&then, &total);
  EXPECT_EQ(then, free);
  cudaFree(data);
  EXPECT_THROW(
    at::empty({static_cast<std::int64_t>(total)}, at::device(at::kCUDA)),
    c10::OutOfMemoryError);
}

TEST_F(Standin, DeviceAndLastErrorAreOfAThread) {
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  cudaSetDevice(1);
  std::thread([] {
    int device = -1;
    cudaGetDevice(&device);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }).join();
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  cudaSetDevice(0);
}

TEST_F(Standin, AQueryThatIsNotReadyStaysTheLastError) {
  TwoStreams streams;
  for (int i = 0; i < 4; ++i)
    cudaMemsetAsync(streams.data, i, sizeof(int), streams.first);
  EXPECT_EQ(cudaStreamQuery(streams.first), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  while (cudaStreamQuery(streams.first) == cudaErrorNotReady) {
  }
  cudaGetLastError();
  EXPECT_EQ(streams.data[0], written * 3);
}

TEST_F(Standin, ACaptureRefusesCallsByTheModeOfTheThread) {
  TwoStreams streams;
  void* data = nullptr;
  cudaGraph_t graph = nullptr;
  cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeThreadLocal);
  std::thread([&] { // of no concern to another thread
    void* other = nullptr;
    EXPECT_EQ(cudaMalloc(&other, 16), cudaSuccess);
    cudaFree(other);
  })
    .join();
  auto mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  EXPECT_EQ(cudaMalloc(&data, 16), cudaSuccess);
  cudaThreadExchangeStreamCaptureMode(&mode);
  EXPECT_EQ(cudaStreamEndCapture(streams.first, &graph), cudaSuccess);
  cudaGraphDestroy(graph);

  cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(cudaMalloc(&data, 16), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(streams.first, &graph),
            cudaErrorStreamCaptureInvalidated);
  cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeGlobal);
  std::thread([&] {
    EXPECT_EQ(cudaMalloc(&data, 16), cudaErrorStreamCaptureUnsupported);
  }).join();
  cudaStreamEndCapture(streams.first, &graph);
  cudaGetLastError();
}

TEST_F(Standin, AWaitForTheDeviceBreaksANeighboursCapture) {
  TwoStreams streams;
  cudaGraph_t graph = nullptr;
  cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeThreadLocal);
  std::thread([&] {
    EXPECT_EQ(cudaStreamSynchronize(streams.second), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  }).join();
  EXPECT_EQ(cudaStreamEndCapture(streams.first, &graph),
            cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_F(Standin, AForkedStreamMustJoinItsCapture) {
  TwoStreams streams;
  for (const bool joins : {true, false}) {
    cudaGraph_t graph = nullptr;
    cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeThreadLocal);
    cudaEventRecord(streams.event, streams.first);
    cudaStreamWaitEvent(streams.second, streams.event, 0);
    cudaMemsetAsync(streams.data, 1, sizeof(int), streams.second);
    cudaEventRecord(streams.event, streams.second);
    if (joins)
      cudaStreamWaitEvent(streams.first, streams.event, 0);
    EXPECT_EQ(cudaStreamEndCapture(streams.first, &graph),
              joins ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
  }
  cudaGetLastError();
}

TEST_F(Standin, AKernelWithAHostBodyRunsWhenItsStreamDoes) {
  TwoStreams streams;
  static const char stub = 0;
  const auto add
    = reinterpret_cast<void (*)(void**, const char*, char*, const char*, int,
                                void*, void*, void*, void*, int*)>(
      ::dlsym(RTLD_DEFAULT, "__cudaRegisterFunction"));
  add(nullptr, &stub, nullptr, "write_number", -1, nullptr, nullptr, nullptr,
      nullptr, nullptr);
  troupe::standin::set_kernel_body(
    "write_number", +[](troupe::standin::Grid grid, int* to, int value) {
      *to = value * static_cast<int>(grid.blocks.x);
    });
  int* to = streams.data;
  int value = 7;
  std::array<void*, 2> args{&to, &value};
  cudaLaunchKernel(&stub, {3}, {1}, args.data(), 0, streams.first);
  value = 0;
  EXPECT_EQ(streams.data[0], 0);
  cudaStreamSynchronize(streams.first);
  EXPECT_EQ(streams.data[0], 21);
  EXPECT_EQ(standin_launches("write_number"), 1);
}

TEST_F(Standin, OurOwnKernelsComputeWhatTheirSourceSays) {
  // As launch.cuh's kernel of models/gpu/kernels/add_rows.hpp is registered.
  static const char stub = 0;
  const auto add
    = reinterpret_cast<void (*)(void**, const char*, char*, const char*, int,
                                void*, void*, void*, void*, int*)>(
      ::dlsym(RTLD_DEFAULT, "__cudaRegisterFunction"));
  add(nullptr, &stub, nullptr,
      "_ZN6troupe6models3gpu8run_bodyINS1_7AddRowsEEEvT_", -1, nullptr, nullptr,
      nullptr, nullptr, nullptr);
  struct {
    const float* from;
    float* to;
    std::int64_t rows;
    std::int64_t width;
  } body{nullptr, nullptr, 3, 2};
  float* data = nullptr;
  cudaMallocManaged(reinterpret_cast<void**>(&data), 8 * sizeof(float));
  const std::array<float, 8> numbers{1, 2, 3, 4, 5, 6, 10, 20};
  cudaMemcpy(data, numbers.data(), sizeof numbers, cudaMemcpyDefault);
  body.from = data;
  body.to = data + 6;
  const long before = standin_without_body();
  std::array<void*, 1> args{&body};
  cudaLaunchKernel(&stub, {1}, {256}, args.data(), 0, nullptr);
  std::array<float, 8> sums{};
  cudaMemcpy(sums.data(), data, sizeof sums, cudaMemcpyDefault);
  EXPECT_EQ(sums[6], 10 + 1 + 3 + 5);
  EXPECT_EQ(sums[7], 20 + 2 + 4 + 6);
  EXPECT_EQ(standin_without_body(), before);
  cudaFree(data);
}

TEST_F(Standin, ACollectiveRunsWhenAllStreamsHaveArrived) {
  struct Id {
    char bytes[128];
  } id;
  using Init = int (*)(void**, int, Id, int);
  using Sum
    = int (*)(const void*, void*, std::size_t, int, int, void*, cudaStream_t);
  reinterpret_cast<int (*)(Id*)>(::dlsym(RTLD_DEFAULT, "ncclGetUniqueId"))(&id);
  std::array<void*, 2> members{};
  std::array<cudaStream_t, 2> own{};
  float* data = nullptr;
  cudaMallocManaged(reinterpret_cast<void**>(&data), 2 * sizeof(float));
  for (int rank = 0; rank < 2; ++rank) {
    cudaSetDevice(rank);
    cudaStreamCreateWithFlags(&own[rank], cudaStreamNonBlocking);
    reinterpret_cast<Init>(::dlsym(RTLD_DEFAULT, "ncclCommInitRank"))(
      &members[rank], 2, id, rank);
    data[rank] = static_cast<float>(rank + 1);
  }
  constexpr int fp32 = 7;
  constexpr int sum = 0;
  const auto add
    = reinterpret_cast<Sum>(::dlsym(RTLD_DEFAULT, "ncclAllReduce"));
  add(data, data, 1, fp32, sum, members[0], own[0]);
  for (int i = 0; i < 10; ++i) // nothing can end before the other comes
    EXPECT_EQ(cudaStreamQuery(own[0]), cudaErrorNotReady);
  add(data + 1, data + 1, 1, fp32, sum, members[1], own[1]);
  cudaStreamSynchronize(own[0]);
  EXPECT_EQ(data[0], 3.0F);
  cudaStreamSynchronize(own[1]);
  EXPECT_EQ(data[1], 3.0F);
  for (const cudaStream_t stream : own)
    cudaStreamDestroy(stream);
  cudaFree(data);
  cudaSetDevice(0);
  cudaGetLastError();
}
