// Fused attention without its kernel: with a slow one in its place it equals
// our own attention for whole sequences and for those that continue others,
// alone and in training.
#include "models/engine/engine.hpp"
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/fixed_order.hpp"
#include "models/gpu/flash_attention.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/parallel/run_context.hpp"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/reference.hpp"
#include "tests/support/models/slow_flash.hpp"
#include <gmock/gmock.h>

#include <limits>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::IsEmpty;
using ::testing::Pointwise;
using testing::TempFolder;
using troupe::testing::first_samples;
using troupe::testing::random_floats;
using troupe::testing::random_responses;
using troupe::testing::SlowFlash;
using troupe::testing::small_shape;

const std::vector<std::int64_t> family{0, 2, 5, 5, 6, 10};
const std::vector<std::int32_t> continued{-1, 0, 0, 0, -1};

AttentionShape family_shape() {
  AttentionShape shape{4, 2, 8, family, continued};
  shape.operands = DType::bf16;
  return shape;
}

TEST(FlashSequences, SharedKeysPrecedeTheirOwn) {
  const FlashSequences found(family_shape());
  EXPECT_THAT(found.query_starts, ElementsAre(0, 2, 5, 6, 10));
  EXPECT_THAT(found.key_starts, ElementsAre(0, 2, 7, 10, 14));
  EXPECT_THAT(found.key_tokens,
              ElementsAre(0, 1, 0, 1, 2, 3, 4, 0, 1, 5, 6, 7, 8, 9));
  EXPECT_THAT(found.token_keys, ElementsAre(0, 1, 4, 5, 6, 9, 10, 11, 12, 13));
  EXPECT_THAT(found.copies,
              ElementsAre(CopiedKeys{0, 2, 2}, CopiedKeys{0, 7, 2}));
  EXPECT_EQ(found.most_queries, 4);
  EXPECT_EQ(found.most_keys, 5);
}

TEST(FlashSequences, WithoutSharedKeysAreTheTokensInOrder) {
  AttentionShape shape = family_shape();
  shape.continues = {};
  const FlashSequences found(shape);
  EXPECT_THAT(found.query_starts, ElementsAre(0, 2, 5, 6, 10));
  EXPECT_EQ(found.key_starts, found.query_starts);
  EXPECT_EQ(found.key_tokens, found.token_keys);
  EXPECT_THAT(found.copies, IsEmpty());
}

TEST(FlashTakes, Bf16WithoutASoftCapAndWithHeadsOfWholeVectors) {
  EXPECT_TRUE(flash_takes(family_shape()));
  const std::vector<std::int64_t> nothing{0, 0};
  std::vector<AttentionShape> left(5, family_shape());
  left[0].operands = DType::f32;
  left[1].cap = 50;
  left[2].head_dim = 12;
  left[3].head_dim = 264;
  left[4].cu_seqlens = nothing;
  left[4].continues = {};
  for (const AttentionShape& shape : left)
    EXPECT_FALSE(flash_takes(shape));
}

struct FlashCase {
  std::vector<std::int64_t> cu_seqlens;
  std::vector<std::int32_t> continues;
  std::int64_t kv_heads;
  std::int64_t window;
  float scale;
};

class FusedAttention : public ::testing::TestWithParam<FlashCase> {
protected:
  struct Found {
    std::vector<float> context;
    std::vector<float> lse;
    std::vector<float> d_qkv;
  };

  AttentionShape shape() const {
    const FlashCase& c = GetParam();
    AttentionShape made{4, c.kv_heads, 8, c.cu_seqlens, c.continues, c.scale};
    made.window = c.window;
    made.operands = DType::bf16;
    return made;
  }
  std::vector<float> random(std::int64_t width, std::uint64_t seed) const {
    return random_floats(GetParam().cu_seqlens.back() * width, seed);
  }
  // Runs forward and backward of `compute` over memory that is not cleared.
  Found run(Backend& backend) const {
    const auto qkv = random(shape().columns(), 1);
    const auto d_context = random(32, 2);
    const float dirt = std::numeric_limits<float>::quiet_NaN();
    Found found{std::vector<float>(d_context.size(), dirt),
                std::vector<float>(d_context.size() / 8, dirt),
                std::vector<float>(qkv.size(), dirt)};
    backend.attention(shape(), qkv.data(), found.context.data(),
                      found.lse.data());
    backend.attention_backward(shape(), qkv.data(), found.context.data(),
                               found.lse.data(), d_context.data(),
                               found.d_qkv.data());
    return found;
  }
};

TEST_P(FusedAttention, EqualsOursWithAKernelOfFp32) {
  const SlowFlash kernel(at::kFloat);
  AtenBackend fused(at::kCPU, {.flash = &kernel});
  const Found want = run(host_backend());
  const Found got = run(fused);
  EXPECT_THAT(got.context, Pointwise(FloatNear(1e-5F), want.context));
  EXPECT_THAT(got.lse, Pointwise(FloatNear(1e-5F), want.lse));
  EXPECT_THAT(got.d_qkv, Pointwise(FloatNear(2e-5F), want.d_qkv));
  EXPECT_EQ(kernel.forward_calls(), 1) << "a call for all sequences";
  EXPECT_EQ(kernel.backward_calls(), 1);
}

TEST_P(FusedAttention, EqualsOursWithin2PercentWithAKernelOfBf16) {
  const SlowFlash kernel(at::kBFloat16);
  AtenBackend fused(at::kCPU, {.flash = &kernel});
  const Found want = run(host_backend());
  const Found got = run(fused);
  const auto norm_error = [](const std::vector<float>& a,
                             const std::vector<float>& b) {
    const at::Tensor want_all = at::tensor(b);
    return ((at::tensor(a) - want_all).norm() / want_all.norm()).item<double>();
  };
  EXPECT_LT(norm_error(got.context, want.context), 2e-2);
  EXPECT_LT(norm_error(got.lse, want.lse), 2e-2);
  EXPECT_LT(norm_error(got.d_qkv, want.d_qkv), 2e-2);
  EXPECT_NE(got.context, want.context) << "computed in fp32?";
}

INSTANTIATE_TEST_SUITE_P(
  Cases, FusedAttention,
  ::testing::Values(
    FlashCase{{0, 1, 14, 14, 19}, {}, 2, 0, 0},
    FlashCase{{0, 1, 2, 3}, {}, 2, 0, 0},
    FlashCase{{0, 30, 37}, {}, 4, 7, 0.2F},
    FlashCase{family, continued, 2, 0, 0},
    FlashCase{family, continued, 1, 3, 0.5F},
    FlashCase{{0, 20, 29, 69, 69, 72, 73}, {-1, 0, 0, 0, -1, 4}, 2, 16, 0}));

TEST(FusedAttention, UnsupportedCasesUseThePlainPath) {
  const SlowFlash kernel(at::kBFloat16);
  AtenBackend fused(at::kCPU, {.flash = &kernel});
  AtenBackend plain(at::kCPU);
  AttentionShape shape = family_shape();
  shape.cap = 30;
  const auto qkv = random_floats(10 * shape.columns(), 1);
  std::vector<std::vector<float>> found;
  for (AtenBackend* backend : {&fused, &plain}) {
    found.emplace_back(10 * 32);
    backend->attention(shape, qkv.data(), found.back().data(), nullptr);
  }
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(kernel.forward_calls(), 0);
}

TEST(FusedAttention, OfAtenIsNotUsedOnTheCpu) {
  const FlashKernel& kernel = aten_flash();
  const at::Tensor x = at::zeros({2, 1, 8}, kernel.operands());
  const at::Tensor starts = at::tensor({0, 2}, at::kInt);
  const FlashCall call{x, x, x, starts, starts, 2, 2};
  EXPECT_THROW(kernel.forward(call), c10::NotImplementedError);
  EXPECT_THROW(kernel.backward(call, {x, at::zeros({1, 2})}, x),
               c10::NotImplementedError);
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms())
    << "the order is fixed for this kernel's sums alone";
}

// In a build with CUDA the libraries register their kernels even without a GPU.
TEST(FusedAttention, OfAtenIsBuiltWithTheOtherGpuKernels) {
  const auto on_gpus = [](const char* operation, const char* overload) {
    return c10::Dispatcher::singleton()
      .findSchemaOrThrow(operation, overload)
      .hasKernelForDispatchKey(c10::DispatchKey::CUDA);
  };
  const bool with_gpus = on_gpus("aten::mm", "");
  EXPECT_EQ(on_gpus("aten::_flash_attention_forward", ""), with_gpus);
  EXPECT_EQ(on_gpus("aten::_flash_attention_backward", ""), with_gpus);
  EXPECT_EQ(on_gpus("aten::mm", "dtype"), with_gpus) << "bf16 summed in fp32";
}

TEST(FixedOrder, HoldsWithinItsScope) {
  const auto fixed
    = [] { return at::globalContext().deterministicAlgorithms(); };
  for (int life = 0; life < 2; ++life) {
    EXPECT_FALSE(fixed());
    const FixedOrder order;
    EXPECT_TRUE(fixed());
    EXPECT_FALSE(at::globalContext().deterministicFillUninitializedMemory());
  }
  EXPECT_FALSE(fixed());
}

class FusedTraining : public ::testing::Test {
protected:
  MetricSums train(DType dtype, const FlashKernel* kernel) const {
    AtenBackend backend(at::kCPU, {.flash = kernel});
    Engine::Spec spec = troupe::testing::trained_actor(folder_ / "model");
    spec.backend = &backend;
    spec.dtype = dtype;
    ModelShape shape = small_shape();
    shape.head_dim = 16;
    troupe::testing::write_random_model(spec.folder, shape, 1);
    Engine engine(spec);
    engine.load_weights();
    TrainSpec step;
    step.fn = "sft_loss";
    step.mini_batches = {first_samples(6)};
    RunContext context;
    return engine.train(step, random_responses(2, 3, 9, 14, 4), context);
  }
  TempFolder folder_;
};

TEST_F(FusedTraining, InBf16IsWithin2PercentOfFp32AndSharesPrompts_I1) {
  const SlowFlash kernel(at::kBFloat16);
  const MetricSums got = train(DType::bf16, &kernel);
  const MetricSums want = train(DType::f32, nullptr);
  for (const char* key : {"train/loss", "train/grad_norm"})
    EXPECT_NEAR(got.value(key), want.value(key), 2e-2 * want.value(key));
  EXPECT_GE(kernel.forward_calls(), 2) << "a call a layer";
  EXPECT_GE(kernel.backward_calls(), 2);
  EXPECT_GT(kernel.copied_keys(), 0) << "answers continue their prompt";
}

TEST_F(FusedTraining, InFp32UsesNoKernelOfBf16) {
  const SlowFlash kernel(at::kBFloat16);
  train(DType::f32, &kernel);
  EXPECT_EQ(kernel.forward_calls(), 0);
}

} // namespace
} // namespace troupe::models
