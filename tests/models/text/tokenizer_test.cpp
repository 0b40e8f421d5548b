#include "config/base/error.hpp"
#include "models/text/tokenizer.hpp"

#include "tests/support/models/io_support.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <thread>

namespace troupe::models {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using testing::golden_folder;
using ::testing::HasSubstr;
using testing::read_text;
using testing::write_text;
using troupe::testing::TempFolder;
using TokenIds = std::vector<std::int32_t>;

std::vector<json> tokenizer_rows(const fs::path& path) {
  std::istringstream lines(read_text(path));
  std::vector<json> rows;
  for (std::string line; std::getline(lines, line);)
    rows.push_back(json::parse(line));
  return rows;
}

class GoldenTokenizer : public ::testing::TestWithParam<std::string> {
protected:
  fs::path folder() const {
    return golden_folder() / "tokenizers" / GetParam();
  }
};

/// Returns the ids without special tokens: a list of their own, or a part of
/// those with them.
TokenIds plain_ids(const json& row) {
  if (row.contains("ids_plain"))
    return row.at("ids_plain").get<TokenIds>();
  const auto ids = row.at("ids").get<TokenIds>();
  const auto part = row.at("plain").get<std::pair<std::size_t, std::size_t>>();
  return {ids.begin() + static_cast<std::ptrdiff_t>(part.first),
          ids.begin() + static_cast<std::ptrdiff_t>(part.second)};
}

std::string decoded_of(const json& row) {
  return row.at(row.contains("decoded") ? "decoded" : "text");
}

/// Returns the text without special tokens: one of its own, or a part of that
/// with them.
std::string plain_text(const json& row) {
  if (row.contains("decoded_skip_special"))
    return row.at("decoded_skip_special");
  const auto part = row.at("skip").get<std::pair<std::size_t, std::size_t>>();
  return decoded_of(row).substr(part.first, part.second - part.first);
}

TEST_P(GoldenTokenizer, EncodesEveryTextExactly) {
  TROUPE_NEEDS_DATA(folder());
  const Tokenizer tokenizer = Tokenizer::load(folder());
  const auto rows = tokenizer_rows(folder() / "encode.jsonl");
  EXPECT_GT(rows.size(), 200U);
  for (const json& row : rows) {
    const auto text = row.at("text").get<std::string>();
    EXPECT_EQ(tokenizer.encode(text), row.at("ids").get<TokenIds>()) << text;
    EXPECT_EQ(tokenizer.encode(text, false), plain_ids(row)) << text;
  }
}

TEST_P(GoldenTokenizer, DecodesEveryIdSequenceExactly) {
  TROUPE_NEEDS_DATA(folder());
  const Tokenizer tokenizer = Tokenizer::load(folder());
  for (const json& row : tokenizer_rows(folder() / "encode.jsonl")) {
    const auto ids = row.at("ids").get<TokenIds>();
    EXPECT_EQ(tokenizer.decode(ids, false), decoded_of(row));
    EXPECT_EQ(tokenizer.decode(ids), plain_text(row));
  }
  for (const json& row : tokenizer_rows(folder() / "decode.jsonl")) {
    const auto ids = row.at("ids").get<TokenIds>();
    EXPECT_EQ(tokenizer.decode(ids, false), row.at("text").get<std::string>());
    EXPECT_EQ(tokenizer.decode(ids),
              row.at("text_skip_special").get<std::string>());
  }
}

TEST_P(GoldenTokenizer, StreamsWhatItDecodes) {
  TROUPE_NEEDS_DATA(folder());
  const Tokenizer tokenizer = Tokenizer::load(folder());
  for (const json& row : tokenizer_rows(folder() / "encode.jsonl")) {
    const auto ids = row.at("ids").get<TokenIds>();
    TextStream stream(tokenizer, false);
    std::string text;
    for (const std::int32_t id : ids)
      text += stream.push(id);
    text += stream.finish();
    EXPECT_EQ(text, decoded_of(row));
  }
}

TEST_P(GoldenTokenizer, KnowsItsSizeAndSpecialTokens) {
  TROUPE_NEEDS_DATA(folder());
  const Tokenizer tokenizer = Tokenizer::load(folder());
  const json meta = json::parse(read_text(folder() / "meta.json"));
  EXPECT_EQ(tokenizer.vocab_size(), meta.at("vocab_size"));
  const json config
    = json::parse(read_text(folder() / "tokenizer_config.json"));
  EXPECT_EQ(tokenizer.eos_id(),
            tokenizer.id_of(config.at("eos_token").get<std::string>()));
  EXPECT_TRUE(tokenizer.is_special(tokenizer.eos_id()));
  EXPECT_EQ(*tokenizer.token_of(tokenizer.eos_id()),
            config.at("eos_token").get<std::string>());
  EXPECT_EQ(tokenizer.chat_template(),
            config.at("chat_template").get<std::string>());
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTokenizer,
                         ::testing::ValuesIn(testing::golden_tokenizers()),
                         [](const auto& one) { return one.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenTokenizer);

TEST(GoldenTokenizers, AreAllHere) {
  TROUPE_NEEDS_DATA(golden_folder());
  EXPECT_GE(testing::golden_tokenizers().size(), 7U);
}

json tiny_bpe() {
  return json::parse(R"({
    "added_tokens": [{"id": 5, "content": "<end>", "special": true,
                      "normalized": false}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3,
              "abab": 4}, "merges": ["a b", "ab ab"]}})");
}

Tokenizer parse_tiny(const json& document) {
  return Tokenizer::parse(document.dump(), R"({"eos_token": "<end>"})",
                          "tokenizer.json");
}

std::string tokenizer_error(const json& document) {
  try {
    parse_tiny(document);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Tokenizer, MergesByRankFromTheLeft) {
  const Tokenizer tokenizer = parse_tiny(tiny_bpe());
  EXPECT_THAT(tokenizer.encode("ababab"), ElementsAre(4, 2));
  EXPECT_THAT(tokenizer.encode("ba ab<end>"), ElementsAre(1, 0, 3, 2, 5));
  EXPECT_EQ(tokenizer.eos_id(), 5);
  EXPECT_EQ(tokenizer.bos_id(), -1);
  EXPECT_EQ(tokenizer.decode(TokenIds{4, 5, 99, -1}), "abab");
}

TEST(Tokenizer, EncodesALongPieceInReasonableTime) {
  const Tokenizer tokenizer = parse_tiny(tiny_bpe());
  std::string text;
  for (int i = 0; i < 100'000; ++i)
    text += "ab";
  EXPECT_EQ(tokenizer.encode(text).size(), 50'000U);
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i)
    all += text;
  return all;
}

TEST(Tokenizer, UnigramTakesTheLikeliestTokensOfALongPiece) {
  json document = json::parse(R"({"model": {"type": "Unigram", "unk_id": 0,
    "vocab": [["<unk>", 0], ["a", -2], ["b", -2], ["ab", -3], ["abab", -7],
              ["ba", -2.5]]}})");
  const auto parsed
    = [&] { return Tokenizer::parse(document.dump(), "{}", "tokenizer.json"); };
  EXPECT_THAT(parsed().encode("aba"), ElementsAre(1, 5));
  EXPECT_THAT(parsed().encode("xyab"), ElementsAre(0, 3));
  EXPECT_EQ(parsed().encode(repeated("ab", 100'000)), [] {
    TokenIds ids(100'001, 5);
    ids.front() = 1;
    ids.back() = 2;
    return ids;
  }());
  document["model"].erase("unk_id");
  EXPECT_THROW(parsed().encode("x"), ConfigError);
}

TEST(Tokenizer, WordPieceTakesTheLongestTokensOfALongWord) {
  json document = json::parse(R"({"model": {"type": "WordPiece",
    "unk_token": "?", "continuing_subword_prefix": "##", "vocab":
    {"?": 0, "a": 1, "##ab": 2, "##b": 3, "##abab": 4, "##": 5}}})");
  const auto ids_of = [&](const std::string& text) {
    return Tokenizer::parse(document.dump(), "{}", "tokenizer.json")
      .encode(text);
  };
  EXPECT_THAT(ids_of("ab"), ElementsAre(1, 3));
  EXPECT_THAT(ids_of("aabababb"), ElementsAre(1, 4, 2, 3));
  EXPECT_THAT(ids_of("abx"), ElementsAre(0));
  EXPECT_THAT(ids_of("a" + repeated("b", 99)), ::testing::SizeIs(100U));
  EXPECT_THAT(ids_of("a" + repeated("b", 100)), ElementsAre(0));
  document["model"]["max_input_chars_per_word"] = 1'000'000;
  EXPECT_EQ(ids_of("a" + repeated("ab", 200'000)).size(), 100'001U);
}

TEST(Tokenizer, EncodesTheSameFromManyThreads) {
  const Tokenizer tokenizer = parse_tiny(tiny_bpe());
  const TokenIds expected = tokenizer.encode("ab abab ba");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i)
        EXPECT_EQ(tokenizer.encode("ab abab ba"), expected);
    });
  for (std::thread& thread : threads)
    thread.join();
}

TEST(Tokenizer, NamesFileAndPathOfABadValue) {
  json document = tiny_bpe();
  document["model"]["vocab"]["b"] = "one";
  EXPECT_THAT(tokenizer_error(document), HasSubstr("tokenizer.json"));
  EXPECT_THAT(tokenizer_error(document), HasSubstr("model.vocab.b"));
  document = tiny_bpe();
  document["model"]["vocab"]["b"] = 0;
  EXPECT_THAT(tokenizer_error(document), HasSubstr("same id"));
  document = tiny_bpe();
  document["model"]["vocab"]["b"] = 2'000'000'000;
  EXPECT_THAT(tokenizer_error(document), HasSubstr("largest id"));
  document = tiny_bpe();
  document["model"]["merges"][1] = "ab zz";
  EXPECT_THAT(tokenizer_error(document), HasSubstr("model.merges[1]"));
  document = tiny_bpe();
  document.erase("model");
  EXPECT_THAT(tokenizer_error(document), HasSubstr("model: expected"));
  EXPECT_THAT(tokenizer_error(json::array()), HasSubstr("an object"));
}

TEST(Tokenizer, RefusesUnsupportedPartsByName) {
  const auto with = [](const char* key, const json& value) {
    json document = tiny_bpe();
    document[key] = value;
    return tokenizer_error(document);
  };
  EXPECT_THAT(with("normalizer", {{"type", "Transliterate"}}),
              HasSubstr("normalizer.type: the normalizer 'Transliterate'"));
  EXPECT_THAT(with("pre_tokenizer", {{"type", "UnicodeScripts"}}),
              HasSubstr("the pre-tokenizer 'UnicodeScripts'"));
  EXPECT_THAT(with("post_processor", {{"type", "PairProcessing"}}),
              HasSubstr("the post-processor 'PairProcessing'"));
  EXPECT_THAT(with("decoder", {{"type", "CTC"}}),
              HasSubstr("the decoder 'CTC'"));
  EXPECT_THAT(with("model", {{"type", "Morphemes"}}),
              HasSubstr("the tokenizer model 'Morphemes'"));
  for (const char* model : {"Unigram", "WordPiece"})
    EXPECT_THAT(with("model", {{"type", model}}),
                HasSubstr(std::string(model) + " over bytes"));
  EXPECT_THAT(with("pre_tokenizer", {{"type", "Split"},
                                     {"pattern", {{"Regex", "[a&&b]"}}},
                                     {"behavior", "Isolated"}}),
              HasSubstr("pre_tokenizer.pattern.Regex"));
}

TEST(Tokenizer, BrokenJsonNamesItsLine) {
  const TempFolder folder;
  write_text(folder / "tokenizer.json", "{\n\"model\": {\n]");
  try {
    Tokenizer::load(folder.path());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("tokenizer.json:3"));
  }
}

TEST(Tokenizer, AFolderWithoutTokenizerIsNamed) {
  const TempFolder folder;
  try {
    Tokenizer::load(folder.path());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder.path().string()));
    EXPECT_THAT(error.what(), HasSubstr("tokenizer.json"));
  }
}

TEST(Tokenizer, MustFitTheModel) {
  const Tokenizer tokenizer = parse_tiny(tiny_bpe());
  ModelShape shape;
  shape.vocab_size = 6;
  EXPECT_NO_THROW(tokenizer.check_fits(shape, "m"));
  shape.vocab_size = 5;
  EXPECT_THROW(tokenizer.check_fits(shape, "m"), ConfigError);
}

TEST(Tokenizer, BrokenUtf8CountsAsReplacementCharacters) {
  const Tokenizer tokenizer = parse_tiny(tiny_bpe());
  EXPECT_EQ(tokenizer.encode("a\xFF\xFE"
                             "b"),
            tokenizer.encode("a\xEF\xBF\xBD\xEF\xBF\xBD"
                             "b"));
}

} // namespace
} // namespace troupe::models
