// Generation with a cache of pages against whole sequences on the CPU: the
// tokens do not depend on the cache's form (I1, I2), and as many sequences run
// at once as their tokens have pages.
#include "models/generate/generator.hpp"
#include "models/gpu/aten_backend.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/kernels/kv_cache.hpp"

#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/replaying_recorder.hpp"
#include "tests/support/models/turns_support.hpp"
#include <gmock/gmock.h>

#include <map>

namespace troupe::models {
namespace {

using troupe::testing::at_step;
using troupe::testing::early_ends;
using troupe::testing::Ids;
using troupe::testing::Leader;
using troupe::testing::mixed_prompts;
using troupe::testing::prompt_rows;
using troupe::testing::ragged_options;
using troupe::testing::ragged_prompts;
using troupe::testing::ReplayingRecorder;
using troupe::testing::Response;
using troupe::testing::responses_of;
using troupe::testing::SmallModel;
using troupe::testing::Talk;
using troupe::testing::talking_options;

/// A device whose pages have 16 tokens.
AtenOptions small_pages() {
  return {.page_tokens = 16, .own_kernels = true};
}

/// The same without kernels of our own.
AtenOptions plain_pages() {
  return {.page_tokens = 16};
}

/// The same with captured passes.
AtenOptions captured_pages() {
  return {.new_recorder = &ReplayingRecorder::make,
          .page_tokens = 16,
          .own_kernels = true};
}

struct Generated {
  std::vector<Response> responses;
  std::uint64_t fed_tokens = 0;
};

Generated generate(Backend& backend, const GenerateOptions& options,
                   std::size_t samples = 3) {
  const SmallModel model;
  Generator generator(model.shape, model.weights, {}, backend);
  auto responses = responses_of(
    generator.run(prompt_rows(ragged_prompts(samples)), options, at_step(5)));
  return {std::move(responses), generator.fed_tokens()};
}

/// Returns the bytes of a cache with this many pages besides the spare one.
std::uint64_t bytes_of_pages(std::int64_t pages) {
  const SmallModel model;
  return KvCache(model.shape).slot_bytes(16)
         * static_cast<std::uint64_t>(pages + 1);
}

TEST(PagedGeneration, HasTheTokensOfWholeSlots_I1_I2) {
  const auto want = generate(host_backend(), ragged_options());
  EXPECT_GT(early_ends(want.responses), 2U);
  for (const AtenOptions& form :
       {small_pages(), plain_pages(), captured_pages()})
    for (const std::int64_t sequences : {3, 64})
      for (const std::int64_t tokens : {5, 2048}) {
        AtenBackend backend(at::kCPU, form);
        auto options = ragged_options();
        options.max_sequences = sequences;
        options.max_batch_tokens = tokens;
        SCOPED_TRACE(std::to_string(sequences) + " sequences, "
                     + std::to_string(tokens) + " tokens of a pass");
        const auto got = generate(backend, options);
        expect_near_responses(got.responses, want.responses);
        EXPECT_EQ(got.fed_tokens, want.fed_tokens) << "prompts once";
      }
}

// Without samples that share their prompt each token is fed once, but for those
// of preempted sequences.
TEST(PagedGeneration, IfPagesRunOutTheYoungestIsFedAgainWithTheSameTokens_I2) {
  auto options = ragged_options();
  options.max_new_tokens = 60;
  options.min_new_tokens = 40; // beyond the page that admission foresees
  for (const std::size_t samples : {1U, 3U}) {
    const auto want = generate(host_backend(), options, samples);
    for (const AtenOptions& form : {small_pages(), captured_pages()})
      for (const std::int64_t pages : {4, 5, 9}) {
        AtenBackend backend(at::kCPU, form);
        auto crowded = options;
        crowded.kv_cache_bytes = bytes_of_pages(pages);
        SCOPED_TRACE(std::to_string(samples) + " samples, "
                     + std::to_string(pages) + " pages");
        const auto got = generate(backend, crowded, samples);
        expect_near_responses(got.responses, want.responses);
        EXPECT_GT(got.fed_tokens, want.fed_tokens);
      }
  }
}

TEST(PagedGeneration, OneSequenceFitsWhereverItsTokensDo) {
  AtenBackend backend(at::kCPU, small_pages());
  auto options = ragged_options();
  const SmallModel model;
  options.kv_cache_bytes = KvCache(model.shape).slot_bytes(40 + 24);
  const auto want = generate(host_backend(), ragged_options());
  expect_near_responses(generate(backend, options).responses, want.responses);
  options.kv_cache_bytes -= 1;
  EXPECT_THROW(generate(backend, options), FailureError);
}

std::map<std::uint32_t, Talk> talks(Backend& backend,
                                    const GenerateOptions& options,
                                    bool backwards = false) {
  const SmallModel model;
  Generator generator(model.shape, model.weights, {}, backend);
  auto prompts = mixed_prompts();
  prompts.insert(prompts.end(), 4, Ids(20, 9)); // share a page
  Leader leader(prompts, 4);
  leader.begin(backwards);
  generator.converse(prompt_rows(prompts), options, at_step(5),
                     &leader.queue());
  return leader.talks();
}

TEST(PagedGeneration, OfConversationsHasTheTokensOfWholeSlots_I1_I2) {
  const auto want = talks(host_backend(), talking_options());
  for (const std::int64_t pages : {4, 6, 10, 100})
    for (const bool backwards : {false, true}) {
      AtenBackend backend(at::kCPU, small_pages());
      auto options = talking_options();
      options.kv_cache_bytes = bytes_of_pages(pages);
      const auto got = talks(backend, options, backwards);
      ASSERT_EQ(got.size(), want.size());
      for (const auto& [sample, talk] : want) {
        EXPECT_EQ(got.at(sample).ids, talk.ids) << sample;
        EXPECT_EQ(got.at(sample).turns, talk.turns) << sample;
      }
    }
}

} // namespace
} // namespace troupe::models
