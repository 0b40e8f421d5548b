#include "models/data/dataset.hpp"
#include "models/io/jsonl.hpp"

#include "tests/support/models/dataset_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/small_shape.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <numeric>

namespace troupe::models {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using testing::golden_folder;
using testing::golden_rows;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::letters;
using testing::letters_document;
using ::testing::Not;
using testing::write_text;
using troupe::testing::DatasetFile;
using troupe::testing::TempFolder;

TEST_F(DatasetFile, PromptsGiveNSamplesPerRowInOrder) {
  const auto data = open(DataKind::prompts, "{\"prompt\": \"ab\"}\n\n"
                                            "{\"prompt\": \"c\"}\r\n");
  EXPECT_EQ(data.size(), 2U);
  const std::vector<std::uint32_t> wanted{1, 0};
  const net::Rows rows = data.rows(wanted, SampleId(4), 2);
  EXPECT_THAT(rows.samples,
              ElementsAre(SampleId(4), SampleId(5), SampleId(6), SampleId(7)));
  EXPECT_THAT(rows.at("prompt_ids").lengths, ElementsAre(2, 2, 3, 3));
  EXPECT_THAT(packed(rows, "prompt_ids"),
              ElementsAre(0, 12, 0, 12, 0, 10, 11, 0, 10, 11));
  EXPECT_EQ(data.text(1).line, 3);
  EXPECT_EQ(data.text(1).prompt, "c");
}

TEST_F(DatasetFile, PromptsEndAsTheyAreWritten) {
  auto document = letters_document();
  document["post_processor"]["single"].push_back(
    {{"SpecialToken", {{"id", ">"}}}});
  document["post_processor"]["special_tokens"][">"] = {{"ids", {1}}};
  const auto ending
    = Tokenizer::parse(document.dump(), R"({"eos_token": ">"})", "letters");
  const auto given
    = options(DataKind::prompts, "{\"prompt\": \"a\"}\n{\"prompt\": \"a>\"}");
  for (const Tokenizer& tokenizer : {letters(), ending}) {
    const Dataset data = Dataset::open(given, tokenizer);
    const std::vector<std::uint32_t> both{0, 1};
    EXPECT_THAT(packed(data.rows(both, SampleId(0)), "prompt_ids"),
                ElementsAre(0, 10, 0, 10, 1))
      << "an end token that the text has stays, one that is added does not";
  }
}

TEST_F(DatasetFile, SftMasksThePromptAndEndsTheCompletion) {
  const auto data
    = open(DataKind::sft, "{\"prompt\": \"ab\", \"completion\": \"c\"}\n"
                          "{\"text\": \"xy\"}");
  const std::vector<std::uint32_t> both{0, 1};
  const net::Rows rows = data.rows(both, SampleId(0));
  EXPECT_THAT(packed(rows, "sequence_ids"),
              ElementsAre(0, 10, 11, 12, 1, 0, 33, 34, 1));
  EXPECT_THAT(packed<std::uint8_t>(rows, "loss_mask"),
              ElementsAre(0, 0, 0, 1, 1, 0, 1, 1, 1));
  EXPECT_EQ(data.text(0).response, "c");
}

TEST_F(DatasetFile, PairsShareThePromptAndEndBoth) {
  const auto data
    = open(DataKind::preference,
           "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"cd\"}\n"
           "{\"chosen\": \"b\", \"rejected\": \"\"}\n");
  const std::vector<std::uint32_t> both{0, 1};
  const net::Rows rows = data.rows(both, SampleId(0));
  EXPECT_THAT(packed(rows, "chosen_ids"), ElementsAre(0, 10, 11, 1, 0, 11, 1));
  EXPECT_THAT(packed(rows, "rejected_ids"),
              ElementsAre(0, 10, 12, 13, 1, 0, 1));
  EXPECT_THAT(packed<std::uint8_t>(rows, "chosen_loss_mask"),
              ElementsAre(0, 0, 1, 1, 1, 1, 1));
  EXPECT_THAT(packed<std::uint8_t>(rows, "rejected_loss_mask"),
              ElementsAre(0, 0, 1, 1, 1, 1, 1));
}

TEST_F(DatasetFile, ScoringTakesIdsTextOrPromptAndResponse) {
  const auto data
    = open(DataKind::score, "{\"ids\": [5, 6]}\n{\"text\": \"a\"}\n"
                            "{\"prompt\": \"a\", \"response\": \"b\"}\n");
  const std::vector<std::uint32_t> all{0, 1, 2};
  const net::Rows rows = data.rows(all, SampleId(0));
  EXPECT_THAT(packed(rows, "sequence_ids"),
              ElementsAre(5, 6, 0, 10, 0, 10, 11));
  EXPECT_THAT(packed<std::uint8_t>(rows, "loss_mask"),
              ElementsAre(0, 1, 0, 1, 0, 0, 1));
}

TEST_F(DatasetFile, ScoringResponsesTakesTheTokensOfRollouts) {
  auto given = options(
    DataKind::score,
    "{\"prompt\": \"a\", \"response\": \"b\"}\n"
    "{\"prompt\": \"a\", \"response\": \"b\", \"finish_reason\": \"length\"}\n"
    "{\"prompt_ids\": [5], \"response_ids\": [6, 1], \"response\": \"b\"}\n");
  const std::vector<std::uint32_t> all{0, 1, 2};
  given.ends_responses = true;
  const Dataset whole = Dataset::open(given, letters());
  EXPECT_THAT(packed(whole.rows(all, SampleId(0)), "sequence_ids"),
              ElementsAre(0, 10, 11, 1, 0, 10, 11, 5, 6, 1));
  given.ends_responses = false;
  const Dataset as_is = Dataset::open(given, letters());
  EXPECT_THAT(packed(as_is.rows(all, SampleId(0)), "sequence_ids"),
              ElementsAre(0, 10, 11, 0, 10, 11, 5, 6, 1));
}

TEST_F(DatasetFile, FieldsMapAndTemplateColumns) {
  auto given = options(
    DataKind::prompts,
    R"({"q": "ab", "n": 3, "meta": {"answer": 7}, "data_source": "x"})"
    "\n");
  given.fields = {{"prompt", "{q} {{{n}}}"}, {"ground_truth", "meta.answer"}};
  const Dataset data = Dataset::open(given, letters());
  const RowText text = data.text(0);
  EXPECT_EQ(text.prompt, "ab {3}");
  EXPECT_EQ(text.ground_truth, "7");
  EXPECT_EQ(text.data_source, "x");
  EXPECT_THAT(text.json, HasSubstr("\"meta\""));
}

TEST_F(DatasetFile, VerlRowsKeepTheirGroundTruth) {
  const auto data = open(
    DataKind::prompts,
    R"({"prompt": "a", "reward_model": {"style": "rule", "ground_truth": "72"}, "extra_info": {"split": "train"}})"
    "\n");
  EXPECT_EQ(data.text(0).ground_truth, "72");
  EXPECT_EQ(data.text(0).extra_info, "{\"split\":\"train\"}");
}

TEST_F(DatasetFile, BadRowsNameFileLineAndField) {
  const auto of = [&](DataKind kind, const std::string& row) {
    return complaint(options(kind, "{\"prompt\": \"a\", \"chosen\": \"b\", "
                                   "\"rejected\": \"c\", \"completion\": "
                                   "\"d\"}\n"
                                     + row + "\n"));
  };
  EXPECT_THAT(of(DataKind::prompts, "{\"prompt\": 3}"),
              HasSubstr("rows.jsonl:2: prompt: expected text, got"));
  EXPECT_THAT(of(DataKind::prompts, "{\"promt\": \"a\"}"),
              HasSubstr("rows.jsonl:2: prompt: expected text, got nothing (the "
                        "row has promt)"));
  EXPECT_THAT(of(DataKind::sft, "{\"prompt\": \"a\"}"),
              HasSubstr("rows.jsonl:2: completion: expected text"));
  EXPECT_THAT(of(DataKind::preference, "{\"chosen\": \"a\"}"),
              HasSubstr("rows.jsonl:2: rejected: expected text"));
  EXPECT_THAT(of(DataKind::prompts, "{\"prompt\": \"a\""),
              HasSubstr("rows.jsonl:2: expected JSON, got something else ("));
  EXPECT_THAT(of(DataKind::prompts, "[1]"),
              HasSubstr("rows.jsonl:2: expected a row"));
  EXPECT_THAT(of(DataKind::prompts, "{\"prompt_ids\": [1, 99]}"),
              HasSubstr("rows.jsonl:2: prompt_ids: expected a list"));
  EXPECT_THAT(of(DataKind::prompts, "{\"prompt_ids\": []}"),
              HasSubstr("rows.jsonl:2: prompt: expected at least one token"));
}

TEST_F(DatasetFile, RowsMayHoldIdsBeyondTheTokenizersVocabulary) {
  write_text(folder_ / "tokenizer.json",
             troupe::testing::letters_document().dump());
  write_text(folder_ / "config.json", R"({"vocab_size": 100})");
  const Tokenizer tokenizer = Tokenizer::load(folder_ / "");
  EXPECT_LT(tokenizer.vocab_size(), 99);
  const auto data = Dataset::open(
    options(DataKind::score, "{\"ids\": [5, 99]}\n"
                             "{\"prompt_ids\": [5], \"response_ids\": [99]}"),
    tokenizer);
  EXPECT_EQ(data.size(), 2U);
  EXPECT_THROW(
    Dataset::open(options(DataKind::score, "{\"ids\": [100]}"), tokenizer),
    ConfigError);
}

TEST_F(DatasetFile, RowsOfIdsNeedNoTokenizerButTextsDo) {
  auto shape = troupe::testing::small_shape();
  shape.vocab_size = 100;
  write_text(folder_ / "config.json", print_hf_config(shape));
  const Tokenizer ids = Tokenizer::load_if_any(folder_ / "");
  EXPECT_FALSE(ids.has_vocabulary());
  EXPECT_EQ(
    Dataset::open(options(DataKind::score,
                          "{\"ids\": [5, 99]}\n"
                          "{\"prompt_ids\": [5], \"response_ids\": [99]}"),
                  ids)
      .size(),
    2U);
  const auto says = [&](const char* row) {
    try {
      Dataset::open(options(DataKind::score, row), ids);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no complaint");
  };
  EXPECT_THAT(says("{\"ids\": [100]}"), HasSubstr("from 0 to 99"));
  const auto missing = "rows.jsonl:1: " + (folder_ / "").string()
                       + ": expected a tokenizer.json or a tokenizer.model";
  EXPECT_THAT(says("{\"text\": \"a\"}"), HasSubstr(missing));
  EXPECT_THAT(says("{\"prompt\": \"a\", \"response_ids\": [5]}"),
              HasSubstr(missing));
  EXPECT_THAT(
    says("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}"),
    HasSubstr(missing));
}

TEST_F(DatasetFile, BadRowsCanBeSkippedAndAreCounted) {
  auto given = options(DataKind::prompts, "{\"prompt\": \"a\"}\nbroken\n"
                                          "{\"prompt\": null}\n"
                                          "{\"prompt\": \"b\"}\n");
  given.on_bad_row = "skip";
  const Dataset data = Dataset::open(given, letters());
  EXPECT_EQ(data.size(), 2U);
  EXPECT_EQ(data.report().rows, 4U);
  EXPECT_EQ(data.report().bad_rows, 2U);
  EXPECT_THAT(data.report().messages, ElementsAre(HasSubstr("rows.jsonl:2"),
                                                  HasSubstr("rows.jsonl:3")));
  EXPECT_EQ(data.text(1).line, 4);
}

TEST_F(DatasetFile, NoUsableRowIsAnError) {
  EXPECT_THAT(
    complaint(options(DataKind::prompts, "")),
    HasSubstr("rows.jsonl: expected at least one row, a JSON object a "
              "line, got an empty file"));
  auto given = options(DataKind::prompts, "{\"prompt\": \"abc\"}\n");
  given.max_tokens = 2;
  EXPECT_THAT(complaint(given), HasSubstr("1 overlong"));
}

TEST_F(DatasetFile, OverlongRowsAreSkippedTruncatedOrRefused) {
  auto given = options(DataKind::prompts,
                       "{\"prompt\": \"abcdef\"}\n{\"prompt\": \"ab\"}\n");
  given.max_tokens = 3;
  EXPECT_EQ(Dataset::open(given, letters()).size(), 1U);
  EXPECT_EQ(Dataset::open(given, letters()).report().overlong_rows, 1U);
  given.overlong = "truncate";
  const Dataset cut = Dataset::open(given, letters());
  EXPECT_EQ(cut.report().truncated_rows, 1U);
  const std::vector<std::uint32_t> first{0};
  EXPECT_THAT(packed(cut.rows(first, SampleId(0)), "prompt_ids"),
              ElementsAre(13, 14, 15)); // a prompt keeps its end
  given.overlong = "error";
  EXPECT_THAT(complaint(given), HasSubstr("rows.jsonl:1: prompt: expected at "
                                          "most 3 tokens, got 7"));
}

TEST_F(DatasetFile, SkippedAndTruncatedRowsAreReported) {
  auto given
    = options(DataKind::sft, "{\"prompt\": \"a\", \"completion\": \"b\"}\n"
                             "{\"prompt\": \"a\", \"completion\": \"bcdef\"}\n"
                             "{\"prompt\": \"abcdef\", \"completion\": \"b\"}\n"
                             "broken\n");
  given.max_tokens = 4;
  given.on_bad_row = "skip";
  const auto told = [&](const std::string& overlong) {
    given.overlong = overlong;
    ::testing::internal::CaptureStderr();
    warn_of_lost(Dataset::open(given, letters()));
    return ::testing::internal::GetCapturedStderr();
  };
  const auto file = "warning: data: " + given.files[0].string() + ": ";
  const std::string skipping = told("skip");
  EXPECT_THAT(skipping, HasSubstr(file + "1 bad rows skipped; the first: "));
  EXPECT_THAT(skipping, HasSubstr(file + "2 overlong rows skipped\n"));
  EXPECT_THAT(skipping, Not(HasSubstr("truncated")));
  const std::string cutting = told("truncate");
  EXPECT_THAT(cutting, HasSubstr(file + "1 overlong rows skipped\n"));
  EXPECT_THAT(cutting, HasSubstr(file + "1 overlong rows truncated\n"));
}

TEST_F(DatasetFile, ATruncatedSequenceMustKeepATokenToLearn) {
  auto given
    = options(DataKind::sft, "{\"prompt\": \"abcdef\", \"completion\": \"x\"}\n"
                             "{\"prompt\": \"a\", \"completion\": \"xyz\"}\n");
  given.max_tokens = 4;
  given.overlong = "truncate";
  const Dataset data = Dataset::open(given, letters());
  EXPECT_EQ(data.size(), 1U);
  const std::vector<std::uint32_t> first{0};
  EXPECT_THAT(packed(data.rows(first, SampleId(0)), "sequence_ids"),
              ElementsAre(0, 10, 33, 34));
}

TEST_F(DatasetFile, AMissingMappedColumnIsABadRow) {
  auto given = options(DataKind::prompts, "{\"prompt\": \"a\"}\n");
  given.fields = {{"ground_truth", "answer"}};
  EXPECT_THAT(complaint(given),
              HasSubstr("rows.jsonl:1: ground_truth: expected a value in "
                        "column 'answer', got nothing"));
  given.fields = {{"prompt", "{question"}};
  given.places["data.fields.prompt"] = Place{"x.yaml", 3};
  EXPECT_THAT(complaint(given), HasSubstr("x.yaml:3: data.fields.prompt"));
}

TEST_F(DatasetFile, OtherFormatsAreAnsweredWithTheirConversion) {
  write_text(folder_ / "x.parquet", "PAR1....PAR1");
  DatasetOptions given;
  given.files = {folder_ / "x.parquet"};
  EXPECT_THAT(complaint(given), HasSubstr("a Parquet file"));
  EXPECT_THAT(complaint(given), HasSubstr("read_parquet"));
  EXPECT_THAT(complaint(given), HasSubstr("x.jsonl"));
  EXPECT_THAT(complaint(options(DataKind::prompts, " [\n{}]")),
              HasSubstr("jq -c"));
  EXPECT_THAT(complaint(options(DataKind::prompts, "\x1F\x8B..")),
              HasSubstr("gunzip"));
}

TEST_F(DatasetFile, TheSettingThatNamedAMissingFileIsNamed) {
  Settings settings;
  settings.workflow = "ppo";
  settings.data.train = folder_ / "none.jsonl";
  settings.places["data.train"] = Place{"my.yaml", 12};
  try {
    Dataset::open(settings, letters());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("my.yaml:12: data.train: expected"));
    EXPECT_THAT(error.what(), HasSubstr("none.jsonl"));
  }
}

TEST_F(DatasetFile, TrainingNeedsAnEndToken) {
  const Tokenizer endless = Tokenizer::parse(
    R"({"model": {"type": "WordLevel", "vocab": {"a": 0}}})", "", "t.json");
  const auto given
    = options(DataKind::sft, "{\"prompt\": \"a\", \"completion\": \"a\"}");
  EXPECT_THROW(Dataset::open(given, endless), ConfigError);
}

TEST(GoldenDataset, ReadsProblemsThroughFieldMapping) {
  const fs::path file = golden_rows("problems");
  TROUPE_NEEDS_DATA(file);
  const Tokenizer tokenizer
    = Tokenizer::load(golden_folder() / "tokenizers/bpe_qwen2");
  DatasetOptions options;
  options.files = {file};
  options.fields = {{"prompt", "{question} End with '#### <number>'."},
                    {"ground_truth", "answer"}};
  options.max_tokens = 400;
  const Dataset data = Dataset::open(options, tokenizer);
  const std::size_t written = testing::lines_of(file);
  EXPECT_GE(written, 400U);
  EXPECT_EQ(data.report().rows, written);
  EXPECT_EQ(data.size() + data.report().overlong_rows, written);
  EXPECT_GT(data.size(), written * 3 / 4);
  std::vector<std::uint32_t> all(data.size());
  std::iota(all.begin(), all.end(), 0U);
  const net::Rows rows = data.rows(all, SampleId(0));
  const auto offsets = rows.at("prompt_ids").offsets();
  const auto ids = rows.at("prompt_ids").as<std::int32_t>();
  for (std::uint32_t row = 0; row < data.size(); ++row) {
    const RowText text = data.text(row);
    EXPECT_EQ(tokenizer.decode(
                ids.subspan(offsets[row], offsets[row + 1] - offsets[row])),
              text.prompt);
    EXPECT_THAT(text.ground_truth, HasSubstr("#### "));
  }
}

TEST(GoldenDataset, ReadsPreferencePairs) {
  const fs::path file = golden_rows("pairs");
  TROUPE_NEEDS_DATA(file);
  const Tokenizer tokenizer
    = Tokenizer::load(golden_folder() / "tokenizers/bpe_gpt2");
  DatasetOptions options;
  options.files = {file};
  options.kind = DataKind::preference;
  const Dataset data = Dataset::open(options, tokenizer);
  EXPECT_EQ(data.size(), testing::lines_of(file));
  const auto last = static_cast<std::uint32_t>(data.size() - 1);
  const std::vector<std::uint32_t> some{0, last};
  const net::Rows rows = data.rows(some, SampleId(0));
  for (const char* key : {"chosen_ids", "rejected_ids"}) {
    const auto ids = rows.at(key).as<std::int32_t>();
    EXPECT_EQ(ids.back(), tokenizer.eos_id());
  }
}

TEST(JsonLines, KeepsLineNumbersOverBlankLines) {
  const auto lines
    = JsonLines::view("\xEF\xBB\xBF{}\r\n \t\n{\"a\": 1}", "x.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines.text(0), "{}");
  EXPECT_EQ(lines.text(1), "{\"a\": 1}");
  EXPECT_EQ(lines.line_number(1), 3);
}

} // namespace
} // namespace troupe::models
