// Responses that are made in slices, each by a generation of its own that
// begins with the tokens so far, have the bits of those made at once.
#include "config/base/error.hpp"
#include "models/generate/generator.hpp"
#include "models/generate/response_batch.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/generation_support.hpp"

#include <map>

namespace troupe::models {
namespace {

using testing::at_step;
using testing::prompt_rows;
using testing::responses_of;
using troupe::testing::Ids;
using troupe::testing::Response;
using troupe::testing::SmallModel;

std::vector<Ids> sliced_prompts() {
  return {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10, 11, 12, 13},
          {14, 15}};
}

/// Returns options under which responses end at different lengths, of `most`
/// tokens at most.
GenerateOptions some_options(std::int64_t most,
                             std::int32_t num_stop_ids = 12) {
  GenerateOptions options;
  options.max_new_tokens = most;
  options.min_new_tokens = 2;
  options.seed = 3;
  for (std::int32_t id = 0; id < num_stop_ids; ++id)
    options.stop_ids.push_back(id);
  return options;
}

/// Returns prompts with what a slice has made of their responses.
net::Rows continued_rows(const net::Rows& prompts, net::Rows made) {
  std::vector<std::string> keys;
  for (const auto& column : made.columns)
    if (column.key != "loss_mask")
      keys.push_back(column.key);
  return net::merge(std::vector{prompts, net::select_keys(made, keys)});
}

net::Rows in_slices(Generator& generator, const net::Rows& prompts,
                    const std::vector<std::int64_t>& limits,
                    GenerateOptions options, const RunContext& context) {
  net::Rows made;
  for (const auto limit : limits) {
    options.max_new_tokens = limit;
    made = generator.run(made.samples.empty() ? prompts
                                              : continued_rows(prompts, made),
                         options, context);
  }
  return made;
}

/// Returns all bits of rows, by key.
std::map<std::string, std::vector<std::byte>> bits_of(const net::Rows& rows) {
  std::map<std::string, std::vector<std::byte>> bits;
  for (const auto& column : rows.columns) {
    const auto bytes = column.data.as<std::byte>();
    bits[column.key].assign(bytes.begin(), bytes.end());
  }
  return bits;
}

TEST(ResponseBatch, SlicesHaveTheBitsOfAWholeGeneration_I1_I2) {
  const SmallModel model;
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  const RunContext context = at_step(5);
  const auto prompts = prompt_rows(sliced_prompts());
  std::vector<GenerateOptions> all;
  for (const std::int32_t num_stop_ids : {2, 12}) {
    all.push_back(some_options(12, num_stop_ids));
    all.push_back(all.back());
    all.back().top_k = 9;
    all.back().repetition_penalty = 1.3;
    all.back().record.logprobs = ResponseLogprobs::masked;
  }
  std::size_t truncated = 0, ended = 0;
  for (auto options : all)
    for (const std::int64_t tokens : {3, 2048}) {
      options.max_batch_tokens = tokens;
      const auto whole = generator.run(prompts, options, context);
      for (const auto& response : responses_of(whole))
        ++(response.truncated ? truncated : ended);
      for (const auto& limits :
           {std::vector<std::int64_t>{6, 12}, {3, 6, 9, 12}, {1, 2, 12}})
        EXPECT_EQ(
          bits_of(in_slices(generator, prompts, limits, options, context)),
          bits_of(whole))
          << limits.size() << " slices, " << tokens << " tokens a pass";
    }
  EXPECT_GT(truncated, 0U);
  EXPECT_GT(ended, 0U);
}

TEST(ResponseBatch, SlicesOfSeveralStepsShareABatch_I2) {
  const SmallModel model;
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  const auto options = some_options(12);
  const auto prompts = prompt_rows(sliced_prompts());
  const auto whole = generator.run(prompts, options, at_step(4));
  auto half = options;
  half.max_new_tokens = 6;
  const auto first_half = generator.run(prompts, half, at_step(4));
  const auto next_half = generator.run(prompts, half, at_step(5));
  EXPECT_NE(bits_of(first_half), bits_of(next_half)) << "steps have own noise";

  const auto rest = continued_rows(prompts, first_half);
  const std::vector<ResponseBatch> batches
    = {{&rest, StepId(4), 12}, {&prompts, StepId(5), 6}};
  std::map<std::size_t, net::Rows> ended;
  std::map<std::size_t, std::size_t> samples;
  generator.run_batches(
    batches, options, at_step(4),
    {.on_sample = [&](const GeneratedSample& s) { ++samples[s.batch]; },
     .on_batch
     = [&](std::size_t i, net::Rows rows) { ended[i] = std::move(rows); }});
  EXPECT_EQ(bits_of(ended.at(0)), bits_of(whole));
  EXPECT_EQ(bits_of(ended.at(1)), bits_of(next_half));
  EXPECT_EQ(samples, (std::map<std::size_t, std::size_t>{{0, 6}, {1, 6}}));
}

TEST(ResponseBatch, EndedResponsesArePassedOnWithoutAPass) {
  const SmallModel model;
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  auto options = some_options(12);
  options.stop_ids.clear();
  for (std::int32_t id = 0; id < 131; ++id) // of the vocabulary
    options.stop_ids.push_back(id);
  options.min_new_tokens = 0;
  const auto prompts = prompt_rows(sliced_prompts());
  const auto ended = generator.run(prompts, options, at_step(1));
  for (const auto& response : responses_of(ended))
    ASSERT_EQ(response.ids.size(), 1U);
  std::atomic<std::uint64_t> progress{0};
  RunContext context = at_step(1);
  context.progress = &progress;
  EXPECT_EQ(
    bits_of(generator.run(continued_rows(prompts, ended), options, context)),
    bits_of(ended));
  EXPECT_EQ(progress.load(), 0U);
}

TEST(ResponseBatch, ResponsesOfOtherPromptsAreRefused) {
  const SmallModel model;
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  auto options = some_options(4);
  const auto made = generator.run(prompt_rows({{1, 2}}), options, at_step(1));
  options.max_new_tokens = 8;
  try {
    generator.run(continued_rows(prompt_rows({{1, 3}}), made), options,
                  at_step(1));
    FAIL() << "accepted";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::bad_input);
    EXPECT_NE(error.failure().what.find("does not begin with its prompt"),
              std::string::npos);
  }
}

} // namespace
} // namespace troupe::models
