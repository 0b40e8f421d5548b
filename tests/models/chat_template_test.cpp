#include "config/error.hpp"
#include "models/chat_template.hpp"
#include "models/tokenizer.hpp"

#include "tests/support/models/io_support.hpp"
#include "tests/support/places.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace troupe::models {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::read_text;
using testing::shared_folder;

std::vector<ordered_json> chat_rows(const fs::path& path) {
  std::istringstream lines(read_text(path));
  std::vector<ordered_json> rows;
  for (std::string line; std::getline(lines, line);)
    rows.push_back(ordered_json::parse(line));
  return rows;
}

std::string chat_render(const std::string& source, const ordered_json& messages,
                        bool prompt = false) {
  return ChatTemplate(source, {{"bos_token", "<s>"}, {"eos_token", "</s>"}},
                      "tokenizer_config.json")
    .render(messages, prompt);
}

std::string chat_error(const std::string& source) {
  try {
    chat_render(source, ordered_json::array());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

class GoldenChat : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenChat, RendersAndEncodesEveryConversationExactly) {
  const fs::path folder
    = shared_folder() / "golden" / "tokenizers" / GetParam();
  TROUPE_NEEDS_SHARED(folder);
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const ChatTemplate chat(tokenizer);
  const auto rows = chat_rows(folder / "chat.jsonl");
  EXPECT_GE(rows.size(), 20U);
  for (const auto& row : rows) {
    const bool prompt = row.at("add_generation_prompt");
    if (row.contains("error")) {
      EXPECT_THROW(chat.render(row.at("messages"), prompt), ConfigError) << row;
      continue;
    }
    const std::string text = chat.render(row.at("messages"), prompt);
    EXPECT_EQ(text, row.at("text"));
    EXPECT_EQ(tokenizer.encode(text, false),
              row.at("ids").get<std::vector<std::int32_t>>());
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenChat,
                         ::testing::Values("chars", "words", "bpe_gpt2",
                                           "bpe_llama3", "bpe_qwen2",
                                           "sp_llama2", "sp_metaspace"));

TEST(ChatTemplate, RendersWhatTransformersRenders) {
  const fs::path file
    = support::source_folder() / "tests/models/data/chat_cases.jsonl";
  const auto rows = chat_rows(file);
  EXPECT_GT(rows.size(), 200U);
  for (const auto& row : rows) {
    const auto source = row.at("template").get<std::string>();
    const bool prompt = row.at("add_generation_prompt");
    if (row.contains("error"))
      EXPECT_THROW(chat_render(source, row.at("messages"), prompt), ConfigError)
        << row.at("name") << row.at("messages");
    else
      EXPECT_EQ(chat_render(source, row.at("messages"), prompt), row.at("text"))
        << row.at("name") << row.at("messages");
  }
}

/// Byte ranges of transformers' character ranges (these texts are ASCII up to
/// there).
TEST(ChatTemplate, GenerationBlocksAreTheAssistantsPart) {
  const fs::path file
    = support::source_folder() / "tests/models/data/chat_cases.jsonl";
  int seen = 0;
  for (const auto& row : chat_rows(file)) {
    if (!row.contains("spans") || row.at("spans").empty()
        || row.at("add_generation_prompt"))
      continue;
    const ChatTemplate chat(row.at("template"), {{"eos_token", "</s>"}}, "t");
    EXPECT_EQ(chat.render_turns(row.at("messages")).assistant,
              row.at("spans").get<std::vector<TextSpan>>());
    ++seen;
  }
  EXPECT_GE(seen, 4);
}

const char* plain_template() {
  return "{% for m in messages %}<{{ m.role }}>{{ m.content }};{% endfor %}"
         "{% if add_generation_prompt %}<assistant>{% endif %}";
}

TEST(ChatTemplate, AssistantTurnsAreWhatTheyAddToTheText) {
  const ChatTemplate chat(plain_template(), {}, "t");
  const auto turns = chat.render_turns(ordered_json::parse(
    R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
        {"role": "assistant", "content": "d"}])"));
  EXPECT_EQ(turns.text, "<user>a;<assistant>b;<user>c;<assistant>d;");
  EXPECT_THAT(turns.assistant, ElementsAre(TextSpan(19, 21), TextSpan(40, 42)));
}

TEST(ChatTemplate, RefusesTurnsThatChangeWhatStandsBefore) {
  const ChatTemplate chat(
    "{% for m in messages %}{% if loop.last or m.role == 'user' %}"
    "{{ m.content }}{% endif %}{% endfor %}",
    {}, "t");
  EXPECT_THROW(chat.render_turns(ordered_json::parse(
                 R"([{"role": "user", "content": "a"},
                     {"role": "assistant", "content": "b"},
                     {"role": "user", "content": "c"},
                     {"role": "assistant", "content": "d"}])")),
               ConfigError);
}

TEST(ChatTemplate, UnsupportedConstructsAreNamedWithTheirLine) {
  EXPECT_THAT(chat_error("a\n{% include 'x' %}"),
              HasSubstr("tokenizer_config.json: chat template, line 2: "
                        "unsupported construct: the tag 'include'"));
  EXPECT_THAT(chat_error("\n\n{{ 1 | center }}"),
              HasSubstr("line 3: unsupported construct: the filter 'center'"));
  EXPECT_THAT(chat_error("{{ 1 is sameas 1 }}"),
              HasSubstr("line 1: unsupported construct: the test 'sameas'"));
  EXPECT_THAT(chat_error("{{ f(*x) }}"), HasSubstr("unsupported construct"));
  EXPECT_THAT(chat_error("{{ 1"), HasSubstr("line 1: a tag '{{' is not clo"));
  EXPECT_THAT(chat_error("{% if 1 %}"), HasSubstr("expected the tag 'endif'"));
  EXPECT_THAT(chat_error("{{ nobody() }}"),
              HasSubstr("line 1: 'nobody' is undefined"));
  EXPECT_THAT(chat_error("\n{{ raise_exception('no tools') }}"),
              HasSubstr("line 2: the template refuses these messages: no to"));
}

TEST(ChatTemplate, HostileTemplatesEndWithAnError) {
  EXPECT_THAT(chat_error("{{ 'aaaaaaaaaaaaaaaa' * 99999999999 }}"),
              HasSubstr("64 MiB"));
  EXPECT_THAT(chat_error("{{ range(99999999999) }}"), HasSubstr("100000"));
  EXPECT_THAT(chat_error(std::string(5000, '(')),
              ::testing::AnyOf(HasSubstr("not closed"), HasSubstr("no error")));
  EXPECT_THAT(chat_error("{{ " + std::string(5000, '(') + " }}"),
              HasSubstr("not closed"));
  EXPECT_THAT(
    chat_error("{{ " + std::string(5000, '(') + std::string(5000, ')') + " }}"),
    HasSubstr("nested too deeply"));
  EXPECT_THAT(chat_error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
              HasSubstr("too deeply"));
  EXPECT_THAT(chat_error("{% for a in range(9999) %}{% for b in range(9999) %}"
                         "{% endfor %}{% endfor %}"),
              HasSubstr("does not end"));
  EXPECT_THAT(chat_error("{{ 9223372036854775807 + 1 }}"),
              HasSubstr("too large"));
  EXPECT_THAT(chat_error("{{ namespace(a=1) | dictsort }}"),
              HasSubstr("items needs a mapping"));
}

TEST(ChatTemplate, TellsTheTimeInTheAskedFormat) {
  const std::string year
    = chat_render("{{ strftime_now('%Y') }}", ordered_json::array());
  EXPECT_EQ(year.size(), 4U);
  EXPECT_GE(std::stoi(year), 2025);
}

} // namespace
} // namespace troupe::models
