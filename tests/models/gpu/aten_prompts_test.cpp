// Attention of prompts of generation by a fused kernel: with a slow kernel in
// its place it equals the CPU's over its own cache, whatever was cached before.
#include "models/gpu/aten_backend.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/kernels/kv_cache.hpp"

#include <ATen/ATen.h>

#include "tests/support/models/reference.hpp"
#include "tests/support/models/slow_flash.hpp"
#include "tests/support/models/typed_buffers.hpp"
#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace troupe::models {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;
using troupe::testing::random_floats;
using troupe::testing::read_typed;
using troupe::testing::SlowFlash;
using troupe::testing::write_typed;

constexpr std::int64_t prompt_heads = 4;
constexpr std::int64_t prompt_dim = 8;
constexpr std::int64_t prompt_most_tokens = 80;

struct PromptCase {
  std::int64_t kv_heads = 2;
  std::int64_t window = 0;
  float cap = 0;
};

/// Tokens of a slot in a pass.
struct FedTokens {
  std::int32_t slot;
  std::int32_t first;
  std::int32_t count;
};

/// A layer's cache of one backend, and the passes that it has had.
class FedCache {
public:
  FedCache(Backend& backend, const PromptCase& c, DType type = DType::f32)
    : backend_(backend),
      case_(c),
      cache_(shape_of(c), backend, type),
      rope_({1.0F, 0.3F, 0.1F, 0.01F}, 1.0F, backend) {
    cache_.reset(6, prompt_most_tokens);
    for (int slot = 0; slot < 6; ++slot)
      cache_.take_slot();
    rope_.grow(prompt_most_tokens);
  }

  /// Returns the context of a pass.
  std::vector<float> feed(const std::vector<FedTokens>& fed) {
    std::vector<DecodeToken> tokens;
    std::vector<DecodeGroup> groups;
    for (const FedTokens& f : fed) {
      groups.push_back({tokens.size(), static_cast<std::size_t>(f.count),
                        f.slot, f.first + f.count});
      for (std::int32_t i = 0; i < f.count; ++i)
        tokens.push_back({0, f.slot, f.first + i});
    }
    cache_.begin_pass(tokens);
    return attend({tokens, groups});
  }
  /// Gives `to` the first tokens of `from`.
  void share(std::int32_t from, std::int32_t to, std::int64_t tokens) {
    cache_.share_prefix(from, to, tokens);
  }

private:
  static ModelShape shape_of(const PromptCase& c) {
    ModelShape shape;
    shape.num_layers = 1;
    shape.num_kv_heads = c.kv_heads;
    shape.head_dim = prompt_dim;
    return shape;
  }

  std::vector<float> attend(const DecodeTokens& tokens) {
    DecodeAttention what{0, prompt_heads, case_.kv_heads, prompt_dim};
    what.scale = 0.4F;
    what.window = case_.window;
    what.cap = case_.cap;
    what.rope = &rope_;
    const std::int64_t rows = std::ssize(tokens.all);
    TypedBlock qkv(nullptr, cache_.type());
    TypedBlock context(nullptr, cache_.type());
    write_typed(backend_, random_floats(rows * what.columns(), ++passes_),
                qkv.reserve(rows * what.columns()));
    context.reserve(rows * prompt_heads * prompt_dim);
    backend_.decode_attention(what, tokens, cache_, qkv.data(), context.data());
    std::vector<float> found(
      static_cast<std::size_t>(rows * prompt_heads * prompt_dim));
    read_typed(backend_, context.data(), found);
    return found;
  }

  Backend& backend_;
  PromptCase case_;
  KvCache cache_;
  RopeTable rope_;
  std::uint64_t passes_ = 0;
};

/// Returns the contexts of passes that mix new prompts, prompts that continue
/// their cache within and across pages, one of a shared prefix, and single
/// tokens.
std::vector<std::vector<float>> mixed_passes(FedCache& cache) {
  std::vector<std::vector<float>> found{
    cache.feed({{0, 0, 5}, {1, 0, 37}, {2, 0, 1}, {3, 0, 16}})};
  cache.share(1, 4, 32);
  found.push_back(cache.feed(
    {{0, 5, 12}, {2, 1, 1}, {4, 32, 9}, {3, 16, 1}, {5, 0, 20}, {1, 37, 30}}));
  found.push_back(cache.feed({{0, 17, 4}}));
  found.push_back(cache.feed({{4, 41, 1}, {1, 67, 1}}));
  return found;
}

/// Returns a device with pages of 16 tokens whose kernel copies at most so many
/// keys at once.
AtenOptions fused_options(const SlowFlash& kernel, const PromptCase& c,
                          std::int64_t copied_keys, bool own_kernels) {
  return {.flash = &kernel,
          .page_tokens = 16,
          .copied_key_bytes = copied_keys * 2 * c.kv_heads * prompt_dim
                              * static_cast<std::int64_t>(sizeof(float)),
          .own_kernels = own_kernels};
}

/// Expects the CPU's contexts, and one call for each pass with prompts, one
/// more where some are new and others are not, and one more where these are too
/// many keys.
void expect_contexts(const std::vector<std::vector<float>>& want,
                     const PromptCase& c, std::int64_t copied_keys,
                     bool own_kernels) {
  SCOPED_TRACE(std::to_string(c.kv_heads) + " key heads, window "
               + std::to_string(c.window) + ", own kernels "
               + std::to_string(own_kernels) + ", "
               + std::to_string(copied_keys) + " keys at once");
  const SlowFlash kernel(at::kFloat);
  AtenBackend backend(at::kCPU,
                      fused_options(kernel, c, copied_keys, own_kernels));
  FedCache cache(backend, c);
  const auto got = mixed_passes(cache);
  for (std::size_t pass = 0; pass < want.size(); ++pass)
    EXPECT_THAT(got[pass], Pointwise(FloatNear(1e-5F), want[pass]))
      << "pass " << pass;
  EXPECT_EQ(kernel.forward_calls(), copied_keys < 100 ? 5 : 4);
}

TEST(FusedPrompts, EqualTheCpusWithAKernelOfFp32) {
  for (const PromptCase& c :
       {PromptCase{}, PromptCase{1}, PromptCase{4}, PromptCase{2, 7}}) {
    FedCache on_cpu(host_backend(), c);
    const auto want = mixed_passes(on_cpu);
    for (const bool own_kernels : {false, true}) {
      expect_contexts(want, c, /*copied_keys=*/1000, own_kernels);
      expect_contexts(want, c, /*copied_keys=*/60, own_kernels);
    }
  }
}

TEST(FusedPrompts, InBf16AreWithin2PercentOfTheCpus) {
  const PromptCase c{2, 7};
  FedCache on_cpu(host_backend(), c);
  const auto want = mixed_passes(on_cpu);
  const SlowFlash kernel(at::kBFloat16);
  AtenOptions options = fused_options(kernel, c, 60, /*own_kernels=*/true);
  options.bf16_storage = DType::bf16;
  AtenBackend backend(at::kCPU, options);
  FedCache cache(backend, c, DType::bf16);
  const auto got = mixed_passes(cache);
  for (std::size_t pass = 0; pass < want.size(); ++pass) {
    const at::Tensor exact = at::tensor(want[pass]);
    const at::Tensor error = at::tensor(got[pass]) - exact;
    EXPECT_LT((error.norm() / exact.norm()).item<double>(), 2e-2) << pass;
  }
  EXPECT_GE(kernel.forward_calls(), 4);
}

TEST(FusedPrompts, OfCappedScoresOrAnotherTypeTakeThePlainPath) {
  const SlowFlash fp32(at::kFloat);
  const SlowFlash bf16(at::kBFloat16);
  for (const bool is_capped : {true, false}) {
    const SlowFlash& kernel = is_capped ? fp32 : bf16;
    const PromptCase c{2, 0, is_capped ? 3.0F : 0.0F};
    AtenBackend fused(at::kCPU,
                      fused_options(kernel, c, 60, /*own_kernels=*/true));
    AtenBackend plain(at::kCPU, {.page_tokens = 16, .own_kernels = true});
    FedCache of_fused(fused, c);
    FedCache of_plain(plain, c);
    EXPECT_EQ(mixed_passes(of_fused), mixed_passes(of_plain));
    EXPECT_EQ(kernel.forward_calls(), 0);
  }
}

} // namespace
} // namespace troupe::models
