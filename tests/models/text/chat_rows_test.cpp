// Rows of messages through a data set, as training reads them.
#include "models/data/dataset.hpp"

#include "tests/support/models/dataset_support.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace troupe::models {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::letters_document;
using troupe::testing::DatasetFile;

/// letters() with a template: "u hi. a ok>" of the texts of a user and an
/// assistant; '>' ends an assistant's text, a space follows it.
Tokenizer chatting_letters() {
  const json config
    = {{"eos_token", ">"},
       {"chat_template",
        "{% for m in messages %}{{ m.role[0] }} {{ m.content }}"
        "{{ eos_token + ' ' if m.role == 'assistant' else '?' }}{% endfor %}"
        "{% if add_generation_prompt %}a {% endif %}"}};
  return Tokenizer::parse(letters_document().dump(), config.dump(), "letters");
}

std::string spelled(const Tokenizer& tokenizer,
                    const std::vector<std::int32_t>& ids) {
  return tokenizer.decode(ids, false);
}

TEST_F(DatasetFile, MessagesBecomeAPromptThroughTheTemplate) {
  const std::string rows
    = R"({"messages": [{"role": "user", "content": "hi"}]})"
      "\n"
      R"({"prompt": [{"role": "user", "content": "yo"}]})"
      "\n"
      R"({"prompt": "raw"})"
      "\n";
  const std::vector<std::uint32_t> all{0, 1, 2};
  const Tokenizer tokenizer = chatting_letters();
  auto given = options(DataKind::prompts, rows);
  const auto data = Dataset::open(given, tokenizer);
  EXPECT_EQ(
    spelled(tokenizer, packed(data.rows(all, SampleId(0)), "prompt_ids")),
    "u hi?a u yo?a <raw");
  EXPECT_EQ(data.text(0).prompt, "u hi?a ");
  given.chat = ChatUse::always;
  EXPECT_EQ(
    spelled(tokenizer,
            packed(Dataset::open(given, tokenizer).rows(all, SampleId(0)),
                   "prompt_ids")),
    "u hi?a u yo?a u raw?a ");
}

TEST_F(DatasetFile, OnlyAssistantTurnsAreLearned) {
  const std::string row = R"({"messages": [{"role": "user", "content": "hi"},
      {"role": "assistant", "content": "ok"}, {"role": "user", "content": "b"},
      {"role": "assistant", "content": "c"}]})";
  std::string line = row;
  std::erase(line, '\n');
  const Tokenizer tokenizer = chatting_letters();
  const auto data = Dataset::open(options(DataKind::sft, line), tokenizer);
  const std::vector<std::uint32_t> first{0};
  const net::Rows rows = data.rows(first, SampleId(0));
  // The template's text after the last end token is removed.
  EXPECT_EQ(spelled(tokenizer, packed(rows, "sequence_ids")),
            "u hi?a ok> u b?a c>");
  std::string mask;
  for (const std::uint8_t m : packed<std::uint8_t>(rows, "loss_mask"))
    mask += m == 1 ? '1' : '.';
  EXPECT_EQ(mask, ".......1111......11");
}

TEST_F(DatasetFile, PromptAndCompletionMessagesAreOneConversation) {
  const Tokenizer tokenizer = chatting_letters();
  auto given = options(
    DataKind::sft,
    R"({"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", )"
    R"("content": "b"}, {"role": "user", "content": "c"}], )"
    R"("completion": [{"role": "assistant", "content": "d"}]})"
    "\n"
    R"({"prompt": "x", "completion": "y"})");
  given.chat = ChatUse::always;
  const auto data = Dataset::open(given, tokenizer);
  const std::vector<std::uint32_t> both{0, 1};
  const net::Rows rows = data.rows(both, SampleId(0));
  EXPECT_EQ(spelled(tokenizer, packed(rows, "sequence_ids")),
            "u a?a b> u c?a d>u x?a y>");
  std::string mask;
  for (const std::uint8_t m : packed<std::uint8_t>(rows, "loss_mask"))
    mask += m == 1 ? '1' : '.';
  EXPECT_EQ(mask, "...............11......11");
}

/// A template that drops the text before the last space of earlier turns.
Tokenizer thinking_letters() {
  const json config
    = {{"eos_token", ">"},
       {"chat_template",
        "{% for m in messages %}{{ m.role[0] }} {% if m.role == 'assistant' "
        "and not loop.last %}{{ m.content.split(' ')[-1] }}{% else %}"
        "{{ m.content }}{% endif %}{{ eos_token }}{% endfor %}"
        "{% if add_generation_prompt %}a {% endif %}"}};
  return Tokenizer::parse(letters_document().dump(), config.dump(), "letters");
}

TEST_F(DatasetFile, TurnsThatTheTemplateChangesAreNotLearnedAndAreCounted) {
  const std::string turns = R"({"role": "user", "content": "a"}, )"
                            R"({"role": "assistant", "content": "hm b"}, )"
                            R"({"role": "user", "content": "c"})";
  const std::string last = R"({"role": "assistant", "content": "so d"})";
  const Tokenizer tokenizer = thinking_letters();
  const auto data = Dataset::open(
    options(DataKind::sft, R"({"messages": [)" + turns + ", " + last + "]}\n"
                             + R"({"prompt": [)" + turns
                             + R"(], "completion": [)" + last + "]}"),
    tokenizer);
  for (const std::uint32_t row : {0U, 1U}) {
    const net::Rows rows = data.rows(std::span(&row, 1), SampleId(0));
    EXPECT_EQ(spelled(tokenizer, packed(rows, "sequence_ids")),
              "u a>a b>u c>a so d>");
    std::string mask;
    for (const std::uint8_t m : packed<std::uint8_t>(rows, "loss_mask"))
      mask += m == 1 ? '1' : '.';
    EXPECT_EQ(mask, "..............11111");
  }
  // of the second row the turn is part of the prompt
  EXPECT_EQ(data.report().unlearned_turns, 1U);
  ::testing::internal::CaptureStderr();
  warn_of_lost(data);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("rows.jsonl: 1 turns of the assistant are left out of "
                        "the loss"));
}

TEST_F(DatasetFile, PairsMayShareTurnsThatTheTemplateChanges) {
  const std::string turns = R"([{"role": "user", "content": "a"}, )"
                            R"({"role": "assistant", "content": "hm b"}, )"
                            R"({"role": "user", "content": "c"}, )";
  const std::string last = R"({"role": "assistant", "content": "so d"}])";
  const std::string other = R"({"role": "assistant", "content": "no e"}])";
  const Tokenizer tokenizer = thinking_letters();
  const std::string shared
    = R"({"chosen": )" + turns + last + R"(, "rejected": )" + turns + other;
  const auto data
    = Dataset::open(options(DataKind::preference, shared + "}"), tokenizer);
  const std::vector<std::uint32_t> first{0};
  const net::Rows rows = data.rows(first, SampleId(0));
  EXPECT_EQ(spelled(tokenizer, packed(rows, "chosen_ids")),
            "u a>a b>u c>a so d>");
  EXPECT_EQ(spelled(tokenizer, packed(rows, "rejected_ids")),
            "u a>a b>u c>a no e>");
  const auto apart = options(
    DataKind::preference,
    R"({"chosen": )" + turns + last
      + R"(, "rejected": [{"role": "user", "content": "a"}, )" + other + "}");
  try {
    Dataset::open(apart, tokenizer);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("rows.jsonl:1: chosen: expected turns that the chat "
                          "template keeps as they are, got message 1, which "
                          "it changes once others follow"));
  }
}

TEST_F(DatasetFile, PairsOfMessagesAreConversations) {
  const Tokenizer tokenizer = chatting_letters();
  const auto data = Dataset::open(
    options(DataKind::preference,
            R"({"prompt": [{"role": "user", "content": "a"}], )"
            R"("chosen": [{"role": "assistant", "content": "b"}], )"
            R"("rejected": [{"role": "assistant", "content": "c"}]})"
            "\n"
            R"({"chosen": [{"role": "user", "content": "a"}, )"
            R"({"role": "assistant", "content": "b"}], )"
            R"("rejected": [{"role": "user", "content": "a"}, )"
            R"({"role": "assistant", "content": "c"}]})"),
    tokenizer);
  const std::vector<std::uint32_t> both{0, 1};
  const net::Rows rows = data.rows(both, SampleId(0));
  EXPECT_EQ(spelled(tokenizer, packed(rows, "chosen_ids")), "u a?a b>u a?a b>");
  EXPECT_EQ(spelled(tokenizer, packed(rows, "rejected_ids")),
            "u a?a c>u a?a c>");
}

TEST_F(DatasetFile, AMissingTemplateNamesTheSettingThatNeedsIt) {
  auto given = options(DataKind::prompts, "{\"prompt\": \"a\"}\n");
  given.chat = ChatUse::always;
  EXPECT_THAT(complaint(given),
              HasSubstr("rows.jsonl:1: data.chat: true needs a chat template"));
}

TEST_F(DatasetFile, MessagesThatCannotBeRenderedAreBadRows) {
  const std::string row = R"({"messages": [{"role": "user"}]})";
  EXPECT_THAT(
    complaint(options(DataKind::prompts, row)),
    HasSubstr("rows.jsonl:1: messages: letters: chat_template: expected a "
              "template for messages"));
  auto refused = options(DataKind::prompts, row);
  refused.chat = ChatUse::never;
  EXPECT_THAT(complaint(refused),
              HasSubstr("rows.jsonl:1: messages: expected text, got messages, "
                        "which data.chat: false refuses"));
  const auto says = [&](DataKind kind, const char* text) {
    try {
      Dataset::open(options(kind, text), chatting_letters());
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no complaint");
  };
  EXPECT_THAT(says(DataKind::prompts, R"({"messages": [{"content": "a"}]})"),
              HasSubstr("rows.jsonl:1: messages: expected a list of messages"));
  EXPECT_THAT(says(DataKind::prompts, R"({"messages": []})"),
              HasSubstr("got an empty list"));
  EXPECT_THAT(
    says(DataKind::sft, R"({"messages": [{"role": "user", "content": "a"}]})"),
    HasSubstr("expected a message of the assistant, got none"));
}

} // namespace
} // namespace troupe::models
