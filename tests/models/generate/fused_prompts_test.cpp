// Generation whose prompts a fused kernel attends to, a slow one in its place:
// the tokens are those of the CPU (I1, I2), for prompts in chunks, samples that
// share a prompt, and conversations.
#include "models/generate/generator.hpp"
#include "models/gpu/aten_backend.hpp"
#include "models/kernels/host_backend.hpp"

#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/slow_flash.hpp"
#include "tests/support/models/turns_support.hpp"
#include <gmock/gmock.h>

#include <map>
#include <string>

namespace troupe::models {
namespace {

using troupe::testing::at_step;
using troupe::testing::Ids;
using troupe::testing::Leader;
using troupe::testing::prompt_rows;
using troupe::testing::Response;
using troupe::testing::responses_of;
using troupe::testing::SlowFlash;
using troupe::testing::SmallModel;
using troupe::testing::Talk;

/// A device whose pages have 16 tokens, with such a kernel.
AtenOptions fused_pages(const SlowFlash& kernel) {
  return {.flash = &kernel, .page_tokens = 16, .own_kernels = true};
}

SmallModel model_of_whole_vectors(std::int64_t window = 0) {
  SmallModel model(5, /*head_dim=*/8);
  for (LayerWeights& layer : model.weights.layers)
    layer.positions.window = window;
  return model;
}

/// Three samples each of prompts of up to 40 tokens.
std::vector<Ids> prompts_in_samples() {
  std::vector<Ids> prompts;
  for (const std::int32_t length : {1, 17, 5, 40, 33}) {
    Ids prompt;
    for (std::int32_t i = 0; i < length; ++i)
      prompt.push_back((length * 7 + i * 3) % 131);
    prompts.insert(prompts.end(), 3, prompt);
  }
  return prompts;
}

TEST(FusedPrompts, HaveTheTokensOfTheCpu_I1_I2) {
  for (const std::int64_t window : {0, 9}) {
    const SmallModel model = model_of_whole_vectors(window);
    const auto responses = [&](Backend& backend, std::int64_t pass_tokens) {
      GenerateOptions options;
      options.max_new_tokens = 10;
      options.seed = 3;
      options.max_batch_tokens = pass_tokens;
      Generator generator(model.shape, model.weights, {}, backend);
      return responses_of(
        generator.run(prompt_rows(prompts_in_samples()), options, at_step(5)));
    };
    const auto want = responses(host_backend(), 2048);
    for (const std::int64_t pass_tokens : {7, 2048}) {
      SCOPED_TRACE("window " + std::to_string(window) + ", "
                   + std::to_string(pass_tokens) + " tokens of a pass");
      const SlowFlash kernel(at::kFloat);
      AtenBackend backend(at::kCPU, fused_pages(kernel));
      expect_near_responses(responses(backend, pass_tokens), want);
      EXPECT_GT(kernel.forward_calls(), 0);
      if (pass_tokens == 7) {
        EXPECT_GT(kernel.copied_keys(), 0) << "chunks continue their prompt";
      }
    }
  }
}

TEST(FusedPrompts, OfConversationsHaveTheTokensOfTheCpu_I1_I2) {
  const SmallModel model = model_of_whole_vectors();
  const auto talks = [&](Backend& backend) {
    auto prompts = troupe::testing::mixed_prompts();
    prompts.insert(prompts.end(), 4, Ids(20, 9)); // share a page
    Generator generator(model.shape, model.weights, {}, backend);
    Leader leader(prompts, 4);
    leader.begin();
    generator.converse(prompt_rows(prompts), troupe::testing::talking_options(),
                       at_step(5), &leader.queue());
    return leader.talks();
  };
  const std::map<std::uint32_t, Talk> want = talks(host_backend());
  const SlowFlash kernel(at::kFloat);
  AtenBackend backend(at::kCPU, fused_pages(kernel));
  const auto got = talks(backend);
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [sample, talk] : want) {
    EXPECT_EQ(got.at(sample).ids, talk.ids) << sample;
    EXPECT_EQ(got.at(sample).turns, talk.turns) << sample;
  }
  EXPECT_GT(kernel.copied_keys(), 0) << "turns continue their conversation";
}

} // namespace
} // namespace troupe::models
