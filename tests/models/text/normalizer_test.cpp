// Normalizers against Hugging Face's tokenizers (data/make_normalizers.py).
#include "config/base/error.hpp"
#include "models/text/tokenizer.hpp"
#include "models/text/tokenizer/normalizer.hpp"

#include "tests/support/places.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace troupe::models {
namespace {

using nlohmann::json;

json normalizer_golden() {
  std::ifstream file(support::source_folder()
                     / "tests/models/cases/normalizers.json");
  return json::parse(file);
}

TEST(Normalizer, NormalizesLikeHuggingFace) {
  const json golden = normalizer_golden();
  for (const auto& [name, one] : golden["cases"].items()) {
    const tokenizer::Normalizer normalizer(
      internal::JsonAt(one["normalizer"], "tokenizer.json", "normalizer"));
    for (std::size_t i = 0; i < golden["texts"].size(); ++i)
      EXPECT_EQ(normalizer.apply(golden["texts"][i]),
                one["texts"][i].get<std::string>())
        << name << " of text " << i;
  }
}

TEST(Normalizer, ATableOfReplacementsThatIsNoneIsRefused) {
  const auto why = [](const char* charsmap) -> std::string {
    const json given
      = {{"type", "Precompiled"}, {"precompiled_charsmap", charsmap}};
    try {
      tokenizer::Normalizer(
        internal::JsonAt(given, "tokenizer.json", "normalizer"));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(why("no base64!"), HasSubstr("precompiled_charsmap: expected "
                                           "base64"));
  for (const char* table : {"", "AAAA", "AAAAAA==", "CAAAAAAAAAA="})
    EXPECT_THAT(why(table), HasSubstr("a table of SentencePiece")) << table;
}

TEST(Normalizer, ALookUpOutsideOfADamagedTableFindsNothing) {
  const json given = {{"type", "Precompiled"},
                      {"precompiled_charsmap", "CAAAAGGFAQAABAAAZmkA"}};
  const tokenizer::Normalizer normalizer(
    internal::JsonAt(given, "tokenizer.json", "normalizer"));
  for (int first = 1; first < 128; ++first)
    EXPECT_EQ(normalizer.apply(std::string(1, static_cast<char>(first))),
              std::string(1, static_cast<char>(first)));
}

TEST(Normalizer, ALowercasingTokenizerFindsAddedTokensAsHuggingFaceDoes) {
  const json golden = normalizer_golden()["lowercasing"];
  const auto tokenizer = Tokenizer::parse(
    golden["tokenizer"].dump(), R"({"eos_token": "<END>"})", "tokenizer.json");
  for (const auto& text : golden["texts"])
    EXPECT_EQ(tokenizer.encode(text[0].get<std::string>()),
              text[1].get<std::vector<std::int32_t>>())
      << text[0];
}

} // namespace
} // namespace troupe::models
