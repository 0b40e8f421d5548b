#include "config/base/error.hpp"
#include "models/text/chat_template.hpp"
#include "models/text/tokenizer.hpp"

#include "tests/support/models/dataset_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/slowdown.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <sstream>

namespace troupe::models {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using nlohmann::ordered_json;
using ::testing::ElementsAre;
using testing::golden_folder;
using ::testing::HasSubstr;
using testing::read_text;
using ::testing::StartsWith;
constexpr auto hostile_limit = 20s * testing::sanitizer_slowdown;

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

/// Expects the text or error of transformers for a row of cases.jsonl.
void expect_rendered(const ordered_json& row) {
  const auto source = row.at("template").get<std::string>();
  const bool prompt = row.at("add_generation_prompt");
  if (row.contains("error"))
    EXPECT_THROW(chat_render(source, row.at("messages"), prompt), ConfigError)
      << row.at("name") << row.at("error");
  else
    EXPECT_EQ(chat_render(source, row.at("messages"), prompt),
              row.at("text").get<std::string>())
      << row.at("name") << row.at("messages");
}

class GoldenChat : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenChat, RendersAndEncodesEveryConversationExactly) {
  const fs::path folder = golden_folder() / "tokenizers" / GetParam();
  TROUPE_NEEDS_DATA(folder);
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
    EXPECT_EQ(text, row.at("text").get<std::string>());
    EXPECT_EQ(tokenizer.encode(text, false),
              row.at("ids").get<std::vector<std::int32_t>>());
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenChat,
                         ::testing::ValuesIn(testing::golden_tokenizers()),
                         [](const auto& one) { return one.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenChat);

TEST(ChatTemplate, RendersWhatTransformersRenders) {
  const fs::path file
    = support::source_folder() / "tests/models/cases/chat_cases.jsonl";
  const auto rows = chat_rows(file);
  EXPECT_GT(rows.size(), 200U);
  for (const auto& row : rows)
    expect_rendered(row);
}

/// Constructs of published templates: choosing from none, unknown filters that
/// are not reached, keys that are numbers, format, every option of tojson.
TEST(GoldenTemplates, RenderOrRefuseAsInTransformers) {
  const auto rows = chat_rows(support::source_folder()
                              / "tests/golden/data/templates/cases.jsonl");
  EXPECT_GE(rows.size(), 100U);
  for (const auto& row : rows)
    expect_rendered(row);
}

/// Byte ranges of transformers' character ranges (these texts are ASCII up to
/// there).
TEST(ChatTemplate, GenerationBlocksMarkAssistantTokens) {
  const fs::path file
    = support::source_folder() / "tests/models/cases/chat_cases.jsonl";
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

TEST(ChatTemplate, AnAssistantTurnIsTheTextItAdds) {
  const ChatTemplate chat(plain_template(), {}, "t");
  const auto turns = chat.render_turns(ordered_json::parse(
    R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
        {"role": "assistant", "content": "d"}])"));
  EXPECT_EQ(turns.text, "<user>a;<assistant>b;<user>c;<assistant>d;");
  EXPECT_THAT(turns.assistant, ElementsAre(TextSpan(19, 21), TextSpan(40, 42)));
}

TEST(ChatTemplate, ATurnThatChangesEarlierTextIsRefused) {
  const ChatTemplate chat(
    "{% for m in messages %}{% if loop.last or m.role == 'user' %}"
    "{{ m.content }}{% endif %}{% endfor %}",
    {}, "t");
  const auto messages = ordered_json::parse(
    R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"}])");
  EXPECT_THROW(chat.render_turns(messages), ConfigError);
  const ChatTemplate backwards(
    "{% for m in messages | reverse %}{{ m.content }}{% endfor %}", {}, "t");
  try {
    backwards.render_turns(
      ordered_json::array({messages.at(0), messages.at(1)}));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("the text of assistant message 1 cannot "
                          "be separated from the text before it"));
  }
}

/// The template drops the thoughts of earlier turns, as Qwen3's does.
TEST(ChatTemplate, TurnsThatTheTemplateChangesAreNoAssistantTokens) {
  const auto rows = chat_rows(support::source_folder()
                              / "tests/models/cases/chat_cases.jsonl");
  const auto row = std::ranges::find_if(
    rows, [](const auto& r) { return r.at("name") == "thinking"; });
  ASSERT_NE(row, rows.end());
  const ChatTemplate chat(row->at("template"), {}, "t");
  const auto said = [&](const char* messages) {
    const auto turns = chat.render_turns(ordered_json::parse(messages));
    std::vector<std::string> texts;
    for (const auto& [begin, end] : turns.assistant)
      texts.push_back(turns.text.substr(begin, end - begin));
    return std::make_pair(texts, turns.changed);
  };
  const auto [texts, changed] = said(
    R"([{"role": "user", "content": "a"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nb"},
        {"role": "user", "content": "c"},
        {"role": "assistant", "content": "<think>\nso\n</think>\n\nd"}])");
  EXPECT_THAT(texts, ElementsAre("<think>\nso\n</think>\n\nd<|im_end|>\n"));
  EXPECT_THAT(changed, ElementsAre(1));
  // thoughts since the last question stay, so both turns are the model's text
  const auto [steps, none] = said(
    R"([{"role": "user", "content": "a"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nb"},
        {"role": "tool", "content": "c"},
        {"role": "assistant", "content": "<think>\nso\n</think>\n\nd"}])");
  EXPECT_THAT(steps, ElementsAre("<think>\nhm\n</think>\n\nb<|im_end|>\n",
                                 "<think>\nso\n</think>\n\nd<|im_end|>\n"));
  EXPECT_THAT(none, ElementsAre());
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
  EXPECT_THAT(
    chat_error("{{ 'a'.center(1) }}"),
    HasSubstr("line 1: unsupported construct: the method 'center' of a text"));
  EXPECT_THAT(chat_error("{{ 1"), HasSubstr("line 1: a tag '{{' is not clo"));
  EXPECT_THAT(chat_error("{% if 1 %}"), HasSubstr("expected the tag 'endif'"));
  EXPECT_THAT(chat_error("{{ nobody() }}"),
              HasSubstr("line 1: 'nobody' is undefined"));
  EXPECT_THAT(chat_error("{% if true %}\n{{ 1 | center }}{% endif %}"),
              HasSubstr("line 2: unsupported construct: the filter 'center'"));
  EXPECT_THAT(chat_error("{{ '{:q}'.format(1) }}"),
              HasSubstr("line 1: format: the code 'q' is not for a number"));
  EXPECT_THAT(chat_error("\n{{ raise_exception('no tools') }}"),
              HasSubstr("line 2: the template refuses these messages: no to"));
}

TEST(ChatTemplate, ErrorsNameTheFileOfTheTemplate) {
  const testing::TempFolder folder;
  const auto complaint = [&] {
    try {
      const ChatTemplate chat(Tokenizer::load(folder.path()));
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no complaint");
  };
  const auto file
    = [&](const char* name) { return (folder / name).string() + ": "; };
  testing::write_text(folder / "tokenizer.json",
                      testing::letters_document().dump());
  EXPECT_THAT(complaint(), StartsWith(file("tokenizer.json")
                                      + "chat_template: expected a template"));
  testing::write_text(folder / "tokenizer_config.json",
                      R"({"chat_template": "{% include 'x' %}"})");
  EXPECT_THAT(complaint(), StartsWith(file("tokenizer_config.json")
                                      + "chat template, line 1: unsupported"));
  testing::write_text(folder / "chat_template.jinja", "\n{% include 'x' %}");
  EXPECT_THAT(complaint(), StartsWith(file("chat_template.jinja")
                                      + "chat template, line 2: unsupported"));
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

TEST(ChatTemplate, ANamespaceCannotContainItself) {
  for (const char* value :
       {"ns", "[ns]", "{'a': ns}", "(ns, 1)", "namespace(a=ns)", "[[1], [ns]]"})
    EXPECT_THAT(chat_error(std::string("{% set ns = namespace() %}"
                                       "{% set ns.x = ")
                           + value + " %}"),
                HasSubstr("a namespace inside a list, mapping or namespace"))
      << value;
  EXPECT_EQ(chat_render("{% macro f(n) %}{% set n.x = 2 %}{% endmacro %}"
                        "{% set ns = namespace(x=1) %}{{ f(ns) }}{{ ns.x }}",
                        ordered_json::array()),
            "2");
}

TEST(ChatTemplate, ValuesThatGrowByThemselvesEndWithAnError) {
  const auto grown
    = [](const std::string& step, int times, const std::string& use) {
        return chat_error("{% set ns = namespace(x=[1]) %}{% for i in range("
                          + std::to_string(times) + ") %}{% set ns.x = " + step
                          + " %}{% endfor %}" + use);
      };
  for (const char* use : {"", "{{ ns.x }}", "{{ ns.x | tojson }}",
                          "{{ ns.x == ns.x }}", "{{ ns.x | sort }}"})
    EXPECT_THAT(grown("[ns.x, ns.x]", 40, use), HasSubstr("64 MiB")) << use;
  EXPECT_THAT(grown("[ns.x]", 99999, ""), HasSubstr("nested too deeply"));
  EXPECT_THAT(grown("ns.x + ns.x", 40, ""), HasSubstr("64 MiB"));
  EXPECT_THAT(chat_error("{% set ns = namespace(x=range(99999) | list) %}"
                         "{% for i in range(99) %}{% set ns.x = [ns.x] %}"
                         "{% endfor %}{{ ns.x | tojson(indent=64) }}"),
              HasSubstr("tojson makes more than 64 MiB"));
}

TEST(ChatTemplate, MethodsCountTheMemoryTheyKeep) {
  EXPECT_THAT(chat_error("{% set ns = namespace(d={}) %}"
                         "{% for i in range(99999) %}"
                         "{% set ns.d = {'a': ns.d.items} %}{% endfor %}"),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(chat_error("{% set ns = namespace(x=[]) %}"
                         "{% set l = ['a' * 36000000] %}"
                         "{% for i in range(300) %}{% set ns.x = ns.x + "
                         "(l | map(attribute='strip') | list) %}{% endfor %}"),
              HasSubstr("64 MiB"));
}

TEST(ChatTemplate, RepeatedLongTextsEndWithAnError) {
  const std::string text = "{% set a = 'a' * 36000000 %}";
  for (const char* use :
       {"range(100000) | join(a)", "a.join(range(9) | map('string'))",
        "a.replace('a', a)", "a | replace('a', a)", "a.replace('', a)",
        "'1\n2\n3' | indent(a, true)", "a ~ a", "a + a", "a | list",
        "a.split('a')", "range(100000) | map('replace', '1', a) | list",
        "[a, a]", "{'a': a, 'b': a}"})
    EXPECT_THAT(chat_error(text + "{{ " + use + " }}"),
                ::testing::AnyOf(HasSubstr("64 MiB"), HasSubstr("not end")))
      << use;
}

TEST(ChatTemplate, LongListsCountAStepPerEntry) {
  const std::string list = "{% set ns = namespace(x=range(99999) | list, i=0) "
                           "%}{% for i in range(99999) %}";
  for (const char* use :
       {"-1 in ns.x", "ns.x | unique", "ns.x | last", "ns.x | first",
        "ns.x | sort", "ns.x[::-1]", "ns.x == ns.x + []", "ns.x < ns.x + []",
        "ns.x | max", "ns.x | sum", "ns.x | reverse",
        "ns.x | map('abs') | list", "ns.x | select('even') | list",
        "ns.x | tojson", "ns.x | string", "ns.x | join", "ns.x + ns.x",
        "'b'.startswith(ns.x | map('string') | list)",
        "ns.x is in([ns.x, ns.x])"}) {
    const auto before = std::chrono::steady_clock::now();
    EXPECT_THAT(chat_error(list + "{% set ns.i = ns.i + 1 if (" + use
                           + ") else 0 %}{% endfor %}"),
                HasSubstr("does not end"))
      << use;
    EXPECT_LT(std::chrono::steady_clock::now() - before, hostile_limit) << use;
  }
}

TEST(ChatTemplate, LongFormatsCountAsSteps) {
  const auto before = std::chrono::steady_clock::now();
  for (const std::string use :
       {"('{0}' * 900000).format(1)", "'{:66000000}'.format(1)"})
    EXPECT_THAT(chat_error("{% for i in range(99999) %}{% set x = " + use
                           + " %}{% endfor %}"),
                ::testing::AnyOf(HasSubstr("64 MiB"), HasSubstr("not end")));
  EXPECT_LT(std::chrono::steady_clock::now() - before, hostile_limit);
}

TEST(ChatTemplate, LongTextsInsideFiltersCountAsSteps) {
  const auto before = std::chrono::steady_clock::now();
  const std::string texts = "{% set a = 'a' * 3000000 %}"
                            "{% set b = 'a' * 1400000 ~ 'b' ~ 'a' * 1400000 %}";
  for (const char* use :
       {"range(99999) | map('string') | select('in', a) | list",
        "range(99999) | map('indent', a) | map('length') | list",
        "range(99999) | map('string') | map('default', a) | map('length')",
        "[range(99999) | map('string') | list] | sum(start=[])"})
    EXPECT_THAT(chat_error(texts + "{% for i in range(99999) %}{% set x = "
                           + use + " %}{% endfor %}"),
                ::testing::AnyOf(HasSubstr("64 MiB"), HasSubstr("not end")))
      << use;
  EXPECT_EQ(chat_render(texts
                          + "{{ b in a }}{{ a.find(b) }}"
                            "{{ a.replace(b, '') | length }}"
                            "{{ a.count(b) }}{{ a.strip(b) }}",
                        ordered_json::array()),
            "False-130000000");
  EXPECT_THAT(chat_error(texts
                         + "{{ range(20) | map(attribute=a) | list "
                           "| length }}{{ {}[a].x }}"),
              ::testing::AllOf(HasSubstr("aaa' is undefined"),
                               ::testing::SizeIs(::testing::Lt(200U))));
  EXPECT_LT(std::chrono::steady_clock::now() - before, hostile_limit);
}

TEST(ChatTemplate, MessagesNestedWithoutEndAreRefused) {
  ordered_json deep = "x";
  for (int i = 0; i < 300; ++i)
    deep = ordered_json::array({deep});
  EXPECT_THROW(chat_render("{{ messages[0].content }}",
                           ordered_json::array({{{"content", deep}}})),
               ConfigError);
}

TEST(ChatTemplate, FormatsTheTimeAsRequested) {
  const std::string year
    = chat_render("{{ strftime_now('%Y') }}", ordered_json::array());
  EXPECT_EQ(year.size(), 4U);
  EXPECT_GE(std::stoi(year), 2025);
}

} // namespace
} // namespace troupe::models
