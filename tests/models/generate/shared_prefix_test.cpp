// Many responses to one prompt, and texts that end a response.
#include "models/text/stop_texts.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/io_support.hpp"
#include <nlohmann/json.hpp>

namespace troupe::models {
namespace {

using testing::at_step;
using testing::prompt_rows;
using testing::responses_of;
using troupe::testing::Ids;
using troupe::testing::Response;
using troupe::testing::SmallModel;
using troupe::testing::TempFolder;
using troupe::testing::write_text;

GenerateOptions twelve_tokens() {
  GenerateOptions options;
  options.max_new_tokens = 12;
  options.ignore_eos = true;
  options.seed = 3;
  return options;
}

/// Makes every token two different letters.
std::string two_letter_document(std::int64_t size) {
  nlohmann::json vocab;
  for (std::int64_t id = 0; id < size; ++id)
    vocab[std::string{static_cast<char>('a' + id / 26),
                      static_cast<char>('A' + id % 26)}]
      = id;
  const nlohmann::json document = {
    {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
    {"decoder", {{"type", "Fuse"}}},
    {"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "aA"}}}};
  return document.dump();
}

Tokenizer two_letter_tokens(std::int64_t size) {
  return Tokenizer::parse(two_letter_document(size), "", "letters");
}

TEST(SharedPrefix, APromptOfManySamplesIsPrefilledOnceWithTheSameResponses_I2) {
  const SmallModel model;
  const RunContext context = at_step(5);
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  GenerateOptions options = twelve_tokens();
  const Ids prompt{5, 6, 7, 8, 9, 10, 11, 12, 13};
  const Ids other{1, 2, 3};
  const std::vector<Ids> prompts{prompt, prompt, prompt, other,
                                 other,  {4},    {4}};
  std::vector<Response> alone;
  for (std::uint32_t i = 0; i < prompts.size(); ++i)
    alone.push_back(responses_of(generator.run(prompt_rows({prompts[i]}, i),
                                               options, context))
                      .front());
  for (const std::int64_t sequences : {1, 2, 3, 64})
    for (const std::int64_t tokens : {1, 4, 2048}) {
      options.max_sequences = sequences;
      options.max_batch_tokens = tokens;
      EXPECT_EQ(
        responses_of(generator.run(prompt_rows(prompts), options, context)),
        alone)
        << sequences << " sequences, " << tokens << " tokens";
    }
  // Each prompt once, the last prompt token once per sample, and all new tokens
  // but the last.
  const std::uint64_t responses = prompts.size() * (1 + 11);
  EXPECT_EQ(generator.fed_tokens(), (9 - 1) + (3 - 1) + responses);
}

TEST(SharedPrefix, AStopTextEndsAResponseAcrossTokens) {
  const SmallModel model;
  const RunContext context = at_step(5);
  Generator generator(model.shape, model.weights, {},
                      troupe::testing::backend_under_test());
  GenerateOptions options = twelve_tokens();
  const auto rows = prompt_rows({{1, 2, 3}});
  const Ids all
    = responses_of(generator.run(rows, options, context)).front().ids;
  const Tokenizer tokenizer = two_letter_tokens(model.shape.vocab_size);
  // From the second half of one token to the first half of the one after next.
  const std::string text = tokenizer.decode(all);
  options.stop_texts = std::make_shared<StopTexts>(
    tokenizer, std::vector<std::string>{"never", text.substr(5, 4)});
  const Response stopped
    = responses_of(generator.run(rows, options, context)).front();
  EXPECT_EQ(stopped.ids, Ids(all.begin(), all.begin() + 5));
  EXPECT_FALSE(stopped.truncated);
  options.min_new_tokens = 12;
  EXPECT_EQ(responses_of(generator.run(rows, options, context)).front().ids,
            all);
}

TEST(StopTexts, FinishReasonsAreReported) {
  const Tokenizer tokenizer = two_letter_tokens(8);
  const Ids ids{1, 2};
  EXPECT_STREQ(finish_reason(true, ids, tokenizer), "length");
  EXPECT_STREQ(finish_reason(false, ids, tokenizer), "stop");
}

TEST(StopTexts, AnEndTokenOfTheModelIsNoStopText) {
  const TempFolder folder;
  write_text(folder / "tokenizer.json", two_letter_document(8));
  write_text(folder / "config.json", R"({"vocab_size": 8, "eos_token_id": 2})");
  const auto reason = [&](std::int32_t last) -> std::string {
    const Ids ids{1, last};
    return finish_reason(false, ids, Tokenizer::load(folder.path()));
  };
  EXPECT_EQ(reason(2), "eos");
  EXPECT_EQ(reason(3), "stop");
  write_text(folder / "generation_config.json", R"({"eos_token_id": [2, 3]})");
  EXPECT_EQ(reason(3), "eos");
}

} // namespace
} // namespace troupe::models
