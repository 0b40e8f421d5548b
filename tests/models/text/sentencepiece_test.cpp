// tokenizer.model against libsentencepiece itself, with a model that the test
// trains.
#include "config/base/error.hpp"
#include "models/text/tokenizer.hpp"

#include "tests/support/models/io_support.hpp"
#include <gmock/gmock.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::models {
namespace {

using ::testing::HasSubstr;
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
    {"user_defined_symbols", "<turn>"},
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

/// The file of older folders in place of `added_tokens_decoder`.
TEST(SentencePieceFolder, ReadsTheListOfAddedTokens) {
  const TempFolder folder;
  train_into(folder.path(), "bpe");
  write_text(folder / "added_tokens.json",
             R"({"<|im_start|>": 900, "<|im_end|>": 901, "[PAD]": 902,
                 "<plain>": 903, "<turn>": 3, "<s>": 1, "</s>": 2})");
  write_text(folder / "tokenizer_config.json",
             R"({"eos_token": {"content": "<|im_end|>"}, "pad_token": "[PAD]",
                 "additional_special_tokens": ["<turn>"]})");
  write_text(folder / "special_tokens_map.json",
             R"({"additional_special_tokens":
                 ["<|im_start|>", {"content": "<|im_end|>"}]})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  const TokenIds ids
    = tokenizer.encode("<|im_start|>the<|im_end|><turn><plain>", false);
  ASSERT_GT(ids.size(), 4U);
  EXPECT_EQ(ids.front(), 900);
  EXPECT_EQ(TokenIds(ids.end() - 3, ids.end()), (TokenIds{901, 3, 903}));
  EXPECT_EQ(tokenizer.decode(ids), "the<plain>");
  EXPECT_EQ(tokenizer.eos_id(), 901);
  EXPECT_EQ(tokenizer.pad_id(), 902);
  EXPECT_EQ(tokenizer.bos_id(), -1);
  EXPECT_EQ(tokenizer.vocab_size(), 904);
  EXPECT_TRUE(tokenizer.is_special(1)) << "a control piece";
  ModelShape shape;
  shape.vocab_size = 903;
  EXPECT_THROW(tokenizer.check_fits(shape, "small"), ConfigError);
}

TEST(SentencePieceFolder, TokensOfTheConfigWinOverTheList) {
  const TempFolder folder;
  train_into(folder.path(), "bpe");
  write_text(folder / "added_tokens.json", R"({"<old>": 900, "<gone>": 901})");
  write_text(folder / "tokenizer_config.json",
             R"({"added_tokens_decoder": {"900": {"content": "<new>"}}})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.id_of("<new>"), 900);
  EXPECT_EQ(tokenizer.id_of("<old>"), std::nullopt);
  EXPECT_EQ(tokenizer.id_of("<gone>"), std::nullopt);
}

TEST(SentencePieceFolder, AnAddedTokenMayReplaceAPiece) {
  const TempFolder folder;
  train_into(folder.path(), "bpe");
  const Tokenizer plain = Tokenizer::load(folder.path());
  const std::int32_t piece = plain.encode("boats", false).back();
  const std::string id = std::to_string(piece);
  for (const auto& [file, text] :
       {std::pair{"added_tokens.json",
                  R"({"<zebra>": )" + id + R"(, "<unknown>": 0})"},
        std::pair{"tokenizer_config.json",
                  R"({"added_tokens_decoder": {")" + id
                    + R"(": {"content": "<zebra>"}, "0": {"content":
                             "<unknown>"}}})"}}) {
    write_text(folder / file, text);
    const Tokenizer tokenizer = Tokenizer::load(folder.path());
    EXPECT_EQ(tokenizer.encode("<zebra>", false), TokenIds{piece}) << file;
    EXPECT_EQ(*tokenizer.token_of(0), "<unknown>") << file;
    EXPECT_EQ(tokenizer.vocab_size(), plain.vocab_size()) << file;
  }
}

TEST(SentencePieceFolder, AWrongListOfAddedTokensIsNamed) {
  const TempFolder folder;
  train_into(folder.path(), "bpe");
  for (const auto& [list, says] :
       {std::pair{"[]", "added_tokens.json: expected an object"},
        std::pair{R"({"x": "9"})", "added_tokens.json: x: expected"},
        std::pair{R"({"x": -1})", "added_tokens.json: x: expected"},
        std::pair{R"({"x": 900.5})", "added_tokens.json: x: expected"},
        std::pair{R"({"x": 2147483647})", "added_tokens.json: x: expected"},
        std::pair{R"({"x": 900, "y": 900})", "the id 900 occurs twice"},
        std::pair{"{", "added_tokens.json:1"}}) {
    write_text(folder / "added_tokens.json", list);
    try {
      Tokenizer::load(folder.path());
      ADD_FAILURE() << list;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(says));
    }
  }
  write_text(folder / "added_tokens.json", "{}");
  write_text(folder / "special_tokens_map.json",
             R"({"additional_special_tokens": "x"})");
  EXPECT_THROW(Tokenizer::load(folder.path()), ConfigError);
}

TEST(SentencePieceFolder, ABrokenModelIsAnError) {
  const TempFolder folder;
  write_text(folder / "tokenizer.model", "not a model at all");
  EXPECT_THROW(Tokenizer::load(folder.path()), ConfigError);
  write_text(folder / "tokenizer.model", "");
  EXPECT_THROW(Tokenizer::load(folder.path()), ConfigError);
}

} // namespace
} // namespace troupe::models
