// The temporaries of libtorch's operations, which plans do not count: however
// long a run of weights or a chunk of logits is, they are small.
#include "models/gpu/aten_backend.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

namespace troupe::models {
namespace {

constexpr std::size_t most_temporary_bytes = std::size_t{80} << 20;

/// libtorch's allocator of the CPU with the size of the largest block.
class LargestBlock final : public c10::Allocator {
public:
  LargestBlock() : inner_(c10::GetCPUAllocator()) {
    c10::SetCPUAllocator(this, /*priority=*/255);
  }
  ~LargestBlock() override {
    c10::SetCPUAllocator(inner_, /*priority=*/255);
  }
  c10::DataPtr allocate(std::size_t bytes) override {
    largest_ = std::max(largest_, bytes);
    return inner_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return inner_->raw_deleter();
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  std::size_t bytes() const {
    return largest_;
  }

private:
  c10::Allocator* inner_;
  std::size_t largest_ = 0;
};

TEST(AtenTemporaries, OfTheOptimizerAreThoseOfAPiece) {
  constexpr std::int64_t count = (std::int64_t{1} << 25) + 5; // 128 MiB
  const auto floats = static_cast<std::size_t>(count);
  AtenBackend backend(at::kCPU);
  std::vector<float> weight(floats, 1), grad(floats, 0.5F), m(floats),
    v(floats);
  const OptimizerRun run{
    .begin = 0, .end = count, .moment = 0, .decay = true, .counted = true};
  const LargestBlock largest;
  EXPECT_DOUBLE_EQ(backend.sum_of_squares(grad.data(), {&run, 1}),
                   0.25 * static_cast<double>(count));
  backend.adamw({.keep = 1,
                 .scale = 1,
                 .beta1 = 0.9F,
                 .beta2 = 0.99F,
                 .step = 0.1F,
                 .root = 10,
                 .eps = 0},
                {weight.data(), grad.data(), m.data(), v.data()}, {&run, 1});
  EXPECT_GT(largest.bytes(), 0u);
  EXPECT_LE(largest.bytes(), most_temporary_bytes);
  EXPECT_EQ(weight.front(), weight.back()) << "every piece is updated once";
  EXPECT_LT(weight.back(), 1.0F);
  EXPECT_TRUE(std::ranges::all_of(m, [&](float x) { return x == m.front(); }));
}

TEST(AtenTemporaries, OfAGradientOfLogitsAreThoseOfSomeRows) {
  constexpr std::int64_t rows = 2048;
  constexpr std::int64_t vocab = 16384; // 128 MiB of logits
  AtenBackend backend(at::kCPU);
  std::vector<float> logits(static_cast<std::size_t>(rows * vocab), 0);
  const std::vector<float> ones(rows, 1);
  const std::vector<std::int64_t> targets(rows, 3);
  const LargestBlock largest;
  backend.logit_gradient({.rows = rows,
                          .vocab = vocab,
                          .inverse_temperature = 1,
                          .inverse_cap = 0,
                          .targets_R = targets},
                         {.d_logprobs_R = ones.data(),
                          .d_entropy_R = nullptr,
                          .entropy_R = nullptr,
                          .lse_R = ones.data()},
                         logits.data());
  EXPECT_LE(largest.bytes(), most_temporary_bytes);
  const auto row = [&](std::int64_t r) {
    return std::span(logits).subspan(static_cast<std::size_t>(r * vocab), 8);
  };
  EXPECT_TRUE(std::ranges::equal(row(0), row(rows - 1)));
  EXPECT_GT(row(rows - 1)[3], row(rows - 1)[4]);
}

} // namespace
} // namespace troupe::models
