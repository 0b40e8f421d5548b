// Operators of the real libtorch_cuda on pretended GPUs: the CPU's numbers, in
// the order of streams. Runs under the preload of standin.sh.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include "cuda/standin/standin.hpp"

#include <cmath>

namespace {

using at::Tensor;

constexpr int num_seeds = 20;

class StandinOperators : public ::testing::Test {
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

} // namespace

TEST_F(StandinOperators,
       AnOperatorWaitsForItsStreamAndThenHasTheNumbersOfTheCpu) {
  const Tensor x = some({64, 48});
  const Tensor y = on_gpu(x);
  const Tensor sum = y + y;
  EXPECT_GT(standin_waiting(), 0);
  expect_near(sum, x + x, 0);
  EXPECT_EQ(standin_launches("vectorized_elementwise_kernel"), 1);
  EXPECT_EQ(standin_faults(), 0);
}

TEST_F(StandinOperators, OperatorsOfTheModelHaveTheNumbersOfTheCpu) {
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

TEST_F(StandinOperators, IndexedOperatorsHaveTheNumbersOfTheCpu) {
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

TEST_F(StandinOperators, ProductsOfBf16SumInFp32) {
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

TEST_F(StandinOperators, FlashAttentionHasTheNumbersOfASoftmax) {
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

TEST_F(StandinOperators, TensorsOfTwoStreamsNeedAnEvent) {
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

TEST_F(StandinOperators, AGraphRepeatsTheCapturedOperators) {
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
