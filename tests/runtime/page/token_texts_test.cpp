// Texts of tokens for the page's samples.
#include "runtime/page/token_texts.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace troupe;
using namespace troupe::runtime;
using troupe::test::TempFolder;
using troupe::test::write_text;
using Json = nlohmann::json;

namespace {

constexpr const char* words = R"({"version": "1.0", "added_tokens": [],
  "normalizer": null, "pre_tokenizer": {"type": "Whitespace"},
  "post_processor": null, "decoder": null,
  "model": {"type": "WordLevel", "unk_token": "no",
            "vocab": {"no": 0, "yes": 1, "maybe": 2}}})";

class TokenTextsTest : public ::testing::Test {
protected:
  void add_tokenizer(const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    write_text(folder / "tokenizer.json", words);
  }
  static std::string line(const std::string& ids) {
    return R"({"step":1,"sequence_ids":)" + ids + "}\n";
  }

  const TempFolder temp_;
  const RunFolder folder_{temp_.path()};
  TokenTexts texts_{folder_};
};

TEST_F(TokenTextsTest, EachIdIsReturnedOnce) {
  add_tokenizer(temp_.path() / "latest" / "actor");
  EXPECT_EQ(Json::parse(texts_.next(line("[2,1,2]"))),
            Json::parse(R"({"2": "maybe", "1": "yes"})"));
  EXPECT_EQ(texts_.next(line("[1,2]")), "");
  EXPECT_EQ(Json::parse(texts_.next(line("[1,0]") + R"({"step":1,"sequence)")),
            Json::parse(R"({"0": "no"})"));
}

TEST_F(TokenTextsTest, ModelsOfTheRunHaveThemBeforeACheckpoint) {
  EXPECT_EQ(texts_.next(line("[1]")), "") << "nobody knows";
  add_tokenizer(temp_.path() / "model");
  write_text(folder_.config_file(),
             "workflow: sft\nrun: {steps: 1}\nmodels: {actor: {path: "
               + (temp_.path() / "model").string()
               + "}}\ndata: {train: x.jsonl}\n");
  EXPECT_EQ(texts_.next(line("[1]")), R"({"1":"yes"})");
}

TEST_F(TokenTextsTest, ATokenizerThatCannotBeReadIsNone) {
  add_tokenizer(temp_.path() / "latest" / "actor");
  write_text(temp_.path() / "latest" / "actor" / "tokenizer.json", "{");
  EXPECT_EQ(texts_.next(line("[1]")), "");
}

} // namespace
