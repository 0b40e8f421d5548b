// tokenizer.model against libsentencepiece itself, with a model that the test
// trains.
#include "config/error.hpp"
#include "models/tokenizer.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/io_support.hpp"
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::models {
namespace {

using testing::write_text;
using troupe::testing::TempFolder;
using TokenIds = std::vector<std::int32_t>;

std::string training_text() {
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += "the harbour was calm and the boats came home number "
            + std::to_string(i) + " with fish, bread and news\n";
  return text;
}

/// A BPE or unigram model with byte fallback in `folder`.
void train_into(const std::filesystem::path& folder, const std::string& kind) {
  write_text(folder / "text.txt", training_text());
  std::string model;
  const std::unordered_map<std::string, std::string> arguments{
    {"input", (folder / "text.txt").string()},
    {"model_type", kind},
    {"vocab_size", "340"},
    {"byte_fallback", "true"},
    {"character_coverage", "1.0"},
    {"minloglevel", "3"},
    {"hard_vocab_limit", "false"},
    {"num_threads", "1"}};
  const auto status
    = sentencepiece::SentencePieceTrainer::Train(arguments, nullptr, &model);
  ASSERT_TRUE(status.ok()) << status.ToString();
  write_text(folder / "tokenizer.model", model);
}

class SentencePieceFile : public ::testing::TestWithParam<const char*> {};

TEST_P(SentencePieceFile, EncodesAndDecodesLikeTheLibrary) {
  const TempFolder folder;
  train_into(folder.path(), GetParam());
  sentencepiece::SentencePieceProcessor library;
  ASSERT_TRUE(library.Load((folder / "tokenizer.model").string()).ok());
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.vocab_size(), library.GetPieceSize());
  for (const std::string text :
       {"the boats came home", " two  spaces ", "new words: zebra!",
        "\xC3\xA9t\xC3\xA9 \xF0\x9F\x98\x80", "line\nbreak", "12345", "a"}) {
    std::vector<int> want;
    ASSERT_TRUE(library.Encode(text, &want).ok());
    EXPECT_EQ(tokenizer.encode(text, false), TokenIds(want.begin(), want.end()))
      << text;
    std::string back;
    ASSERT_TRUE(library.Decode(want, &back).ok());
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, false)), back) << text;
  }
  EXPECT_EQ(tokenizer.encode("").size(), 1U) << "the begin token alone";
  EXPECT_EQ(tokenizer.encode("a").front(), library.bos_id());
}

INSTANTIATE_TEST_SUITE_P(Kinds, SentencePieceFile,
                         ::testing::Values("bpe", "unigram"));

TEST(SentencePieceFolder, ConfigNamesSpecialTokensAndTheirUse) {
  const TempFolder folder;
  train_into(folder.path(), "bpe");
  write_text(folder / "tokenizer_config.json",
             R"({"bos_token": "<s>", "eos_token": "</s>",
                 "add_bos_token": false, "add_eos_token": true,
                 "added_tokens_decoder": {"900": {"content": "<|user|>"}}})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.eos_id(), 2);
  EXPECT_EQ(tokenizer.encode("the").back(), 2);
  EXPECT_EQ(tokenizer.encode("<|user|>", false), TokenIds{900});
  EXPECT_EQ(tokenizer.decode(TokenIds{900, 2}), "");
}

TEST(SentencePieceFolder, AddedTokensKeepTheirFlags) {
  const TempFolder folder;
  train_into(folder.path(), "bpe");
  write_text(folder / "tokenizer_config.json",
             R"({"added_tokens_decoder":
                 {"900": {"content": "word", "single_word": true}}})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.encode("word", false), TokenIds{900});
  for (const std::int32_t id : tokenizer.encode("words", false))
    EXPECT_NE(id, 900);
}

TEST(SentencePieceFolder, WrongAddedTokensAreNamed) {
  const TempFolder folder;
  train_into(folder.path(), "bpe");
  for (const char* token :
       {R"("900": {"content": "x", "special": "yes"})", R"("900": {})",
        R"("900": 3)", R"("99999999999": {"content": "x"})",
        R"("nine": {"content": "x"})"}) {
    write_text(folder / "tokenizer_config.json",
               std::string(R"({"added_tokens_decoder": {)") + token + "}}");
    EXPECT_THROW(Tokenizer::load(folder.path()), ConfigError) << token;
  }
}

TEST(SentencePieceFolder, ABrokenModelIsAClearError) {
  const TempFolder folder;
  write_text(folder / "tokenizer.model", "not a model at all");
  EXPECT_THROW(Tokenizer::load(folder.path()), ConfigError);
  write_text(folder / "tokenizer.model", "");
  EXPECT_THROW(Tokenizer::load(folder.path()), ConfigError);
}

} // namespace
} // namespace troupe::models
