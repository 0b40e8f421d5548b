// The stand-ins for CUDA under the real libtorch_cuda: what they compute, and
// what they find. Runs under the preload of standin.sh.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include "cuda/standin/standin.hpp"
#include <dlfcn.h>

#include <array>
#include <cmath>
#include <string>
#include <thread>

namespace {

using at::Tensor;

constexpr int num_seeds = 20;

class Standin : public ::testing::Test {
protected:
  void SetUp() override {
    at::globalContext().lazyInitDevice(at::kCUDA);
    standin_begin(1);
    cudaGetLastError();
  }
};

Tensor on_gpu(const Tensor& x, int device = 0) {
  return x.to(at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device)));
}

Tensor some(at::IntArrayRef sizes) {
  return at::arange(c10::multiply_integers(sizes), at::kFloat)
    .mul_(0.37F)
    .sin_()
    .view(sizes);
}

void expect_near(const Tensor& found, const Tensor& expected,
                 double tolerance = 1e-5) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  const Tensor on_host = found.cpu().to(at::kFloat);
  EXPECT_TRUE(
    at::allclose(on_host, expected.to(at::kFloat), tolerance, tolerance))
    << (on_host - expected.to(at::kFloat)).abs().max();
}

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
  const Tensor x = at::empty({1 << 20}, at::device(at::kCUDA));
  const auto after
    = c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0];
  EXPECT_EQ(after.current - before.current, 4 << 20);
  EXPECT_GE(standin_taken(0), std::size_t{4} << 20);
}

TEST_F(Standin, AnOperatorWaitsForItsStreamAndThenHasTheNumbersOfTheCpu) {
  const Tensor x = some({64, 48});
  const Tensor y = on_gpu(x);
  const Tensor sum = y + y;
  EXPECT_GT(standin_waiting(), 0);
  expect_near(sum, x + x, 0);
  EXPECT_EQ(standin_launches("vectorized_elementwise_kernel"), 1);
  EXPECT_EQ(standin_faults(), 0);
}

TEST_F(Standin, OperatorsOfTheModelHaveTheNumbersOfTheCpu) {
  const Tensor x = some({12, 40});
  const Tensor w = some({40, 24});
  const Tensor b = some({24});
  const Tensor gx = on_gpu(x);
  const Tensor gw = on_gpu(w);
  expect_near(at::mm(gx, gw), at::mm(x, w));
  expect_near(at::mm(gx, gw.t().contiguous().t()), at::mm(x, w));
  expect_near(at::mm(gx.narrow(1, 3, 20), gw.narrow(0, 5, 20)),
              at::mm(x.narrow(1, 3, 20), w.narrow(0, 5, 20)));
  expect_near(at::mv(gx, on_gpu(x).select(0, 2)), at::mv(x, x.select(0, 2)));
  Tensor sum = on_gpu(some({12, 24}));
  sum.addmm_(gx, gw);
  expect_near(sum, some({12, 24}).addmm_(x, w));
  sum.add_(on_gpu(b));
  expect_near(at::bmm(gx.view({3, 4, 40}), gw.expand({3, 40, 24})),
              at::bmm(x.view({3, 4, 40}), w.expand({3, 40, 24})));
  expect_near(at::softmax(gx, 1), at::softmax(x, 1), 0);
  expect_near(at::silu(gx) * 3.0, at::silu(x) * 3.0, 0);
  expect_near((gx.square().mean(1, true) + 1e-5).rsqrt() * gx,
              (x.square().mean(1, true) + 1e-5).rsqrt() * x);
  expect_near(at::cat({gx, gx}, 1), at::cat({x, x}, 1), 0);
  expect_near(at::logsumexp(gx, {1}), at::logsumexp(x, {1}));
  EXPECT_DOUBLE_EQ(gx.sum(at::kDouble).item<double>(),
                   x.sum(at::kDouble).item<double>());
  const auto [values, ids] = at::sort(gx, true, 1, true);
  expect_near(values, std::get<0>(at::sort(x, true, 1, true)), 0);
  expect_near(ids, std::get<1>(at::sort(x, true, 1, true)), 0);
  EXPECT_EQ(standin_faults(), 0) << standin_fault();
  EXPECT_EQ(standin_without_body(), 0);
}

TEST_F(Standin, IndexedOperatorsHaveTheNumbersOfTheCpu) {
  const Tensor x = some({12, 40});
  const Tensor rows = at::tensor({3, 0, 7, 3}, at::kLong);
  const Tensor gx = on_gpu(x);
  const Tensor grows = on_gpu(rows);
  expect_near(gx.index_select(0, grows), x.index_select(0, rows), 0);
  expect_near(gx.clone().index_add_(0, grows, gx.narrow(0, 0, 4)),
              x.clone().index_add_(0, rows, x.narrow(0, 0, 4)), 0);
  expect_near(gx.gather(1, grows.unsqueeze(0)), x.gather(1, rows.unsqueeze(0)),
              0);
  expect_near(
    at::zeros({9, 40}, gx.options())
      .index_copy_(0, grows.narrow(0, 0, 3), gx.narrow(0, 0, 3)),
    at::zeros({9, 40}).index_copy_(0, rows.narrow(0, 0, 3), x.narrow(0, 0, 3)),
    0);
  Tensor put = gx.clone();
  put.index_put_({grows.narrow(0, 0, 3)}, gx.narrow(0, 8, 3));
  Tensor expected = x.clone();
  expected.index_put_({rows.narrow(0, 0, 3)}, x.narrow(0, 8, 3));
  expect_near(put, expected, 0);
  at::globalContext().setDeterministicAlgorithms(true, false);
  expect_near(gx.clone().index_add_(0, grows, gx.narrow(0, 0, 4)),
              x.clone().index_add_(0, rows, x.narrow(0, 0, 4)), 0);
  expect_near(gx.clone().scatter_add_(1, grows.unsqueeze(0), gx),
              x.clone().scatter_add_(1, rows.unsqueeze(0), x), 0);
  at::globalContext().setDeterministicAlgorithms(false, false);
  const Tensor mask = x > 0.5;
  expect_near(gx.masked_fill(on_gpu(mask), -1.0), x.masked_fill(mask, -1.0), 0);
  expect_near(gx.masked_select(on_gpu(mask)), x.masked_select(mask), 0);
  EXPECT_EQ(standin_faults(), 0) << standin_fault();
}

TEST_F(Standin, ProductsOfBf16SumInFp32) {
  const Tensor a = some({16, 32}).to(at::kBFloat16);
  const Tensor b = some({32, 8}).to(at::kBFloat16);
  const Tensor expected = at::mm(a.to(at::kFloat), b.to(at::kFloat));
  expect_near(at::mm(on_gpu(a), on_gpu(b), at::kFloat), expected);
  Tensor c = on_gpu(some({16, 8}));
  at::addmm_out(c, c, on_gpu(a), on_gpu(b), at::kFloat);
  expect_near(c, expected + some({16, 8}));
  expect_near(at::mm(on_gpu(a), on_gpu(b)), expected.to(at::kBFloat16), 1e-2);
  EXPECT_EQ(standin_launches("cublasGemmEx"), 3);
}

TEST_F(Standin, FlashAttentionHasTheNumbersOfASoftmax) {
  const Tensor q = some({7, 4, 16}).to(at::kBFloat16);
  const Tensor k = some({7, 2, 16}).add(0.1).to(at::kBFloat16);
  const Tensor starts = at::tensor({0, 7}, at::kInt);
  const auto found = at::_flash_attention_forward(
    on_gpu(q), on_gpu(k), on_gpu(k), on_gpu(starts), on_gpu(starts), 7, 7, 0.0,
    false, false, 0.25, -1, 0);
  const auto wide
    = [](const Tensor& x) { return x.to(at::kFloat).transpose(0, 1); };
  const Tensor keys = wide(k).repeat_interleave(2, 0);
  const Tensor scores
    = (at::bmm(wide(q), keys.transpose(1, 2)) * 0.25)
        .masked_fill(at::ones({7, 7}, at::kBool).triu(1), -INFINITY);
  expect_near(std::get<0>(found),
              at::bmm(at::softmax(scores, 2), keys).transpose(0, 1), 2e-2);
  expect_near(std::get<1>(found), at::logsumexp(scores, {2}), 1e-4);
  EXPECT_EQ(standin_launches("flash_fwd_kernel"), 1);
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

TEST_F(Standin, TensorsOfTwoStreamsNeedAnEvent) {
  const auto run = [](bool waits) {
    const auto side = c10::cuda::getStreamFromPool();
    Tensor x = at::zeros({8}, at::device(at::kCUDA));
    c10::cuda::device_synchronize();
    Tensor y;
    at::cuda::CUDAEvent written_event;
    x.fill_(3.0);
    written_event.record();
    {
      const c10::cuda::CUDAStreamGuard guard(side);
      if (waits)
        written_event.block(side);
      y = x * 2.0;
    }
    side.synchronize();
    c10::cuda::device_synchronize();
    return y.cpu()[0].item<float>();
  };
  int wrong = 0;
  for (int seed = 0; seed < num_seeds; ++seed) {
    standin_begin(static_cast<std::uint64_t>(seed));
    EXPECT_EQ(run(true), 6.0F);
    wrong += static_cast<int>(run(false) != 6.0F);
  }
  EXPECT_GT(wrong, 0);
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

TEST_F(Standin, AGraphRepeatsTheCapturedOperators) {
  const auto stream = c10::cuda::getStreamFromPool();
  Tensor x = on_gpu(some({8, 8}));
  Tensor y = at::zeros_like(x);
  c10::cuda::device_synchronize();
  at::cuda::CUDAGraph graph;
  {
    const c10::cuda::CUDAStreamGuard guard(stream);
    graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    y.copy_(at::mm(x, x) + 1.0);
    graph.capture_end();
  }
  expect_near(y, at::zeros({8, 8}), 0);
  for (const float factor : {1.0F, 2.0F}) {
    x.copy_(some({8, 8}) * factor);
    graph.replay();
    expect_near(y, at::mm(some({8, 8}), some({8, 8})) * factor * factor + 1.0);
  }
  EXPECT_EQ(standin_launches("cudaGraphLaunch"), 2);
  EXPECT_EQ(standin_faults(), 0) << standin_fault();
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
