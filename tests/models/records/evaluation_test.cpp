// Numbers by hand: two rows, two samples each.
#include "models/records/evaluation.hpp"

#include "tests/support/models/dataset_support.hpp"
#include <gmock/gmock.h>

#include <cmath>

namespace troupe::models {
namespace {

class EvaluationTest : public troupe::testing::DatasetFile {
protected:
  static std::vector<nlohmann::json> lines(const Evaluation& found) {
    std::vector<nlohmann::json> rows;
    std::istringstream text{found.lines};
    for (std::string line; std::getline(text, line);)
      rows.push_back(nlohmann::json::parse(line));
    return rows;
  }
};

template <class T>
net::Column column(const char* key, DType dtype,
                   const std::vector<std::vector<T>>& lists) {
  std::vector<std::uint32_t> lengths;
  std::vector<T> all;
  for (const auto& list : lists) {
    lengths.push_back(static_cast<std::uint32_t>(list.size()));
    all.insert(all.end(), list.begin(), list.end());
  }
  return net::make_column(key, dtype, lengths, all.data());
}

TEST_F(EvaluationTest, ResponsesGiveMeanBestAndPassByDataSource) {
  const auto data = open(DataKind::prompts,
                         R"({"prompt": "ab", "data_source": "sums"}
{"prompt": "cd"}
)");
  const std::vector<std::int32_t> ids{0, 10, 11, 12};
  const std::vector<std::uint8_t> mask{0, 0, 0, 1};
  // in another order than that of the samples
  const net::Rows rows(
    {SampleId{3}, SampleId{0}, SampleId{1}, SampleId{2}},
    {column<std::int32_t>("eval_sequence_ids", DType::i32,
                          {ids, ids, ids, ids}),
     column<std::uint8_t>("eval_loss_mask", DType::u8,
                          {mask, mask, mask, mask}),
     column<std::uint8_t>("eval_truncated", DType::u8, {{1}, {0}, {0}, {0}}),
     column<float>("eval_scores", DType::f32, {{4}, {1}, {0.25F}, {-2}})});
  const auto tokenizer = testing::letters();
  const auto found = evaluate_responses({.data = data,
                                         .tokenizer = tokenizer,
                                         .step = StepId{20},
                                         .samples_per_row = 2,
                                         .pass_at = 0.5},
                                        rows);
  EXPECT_DOUBLE_EQ(found.sums.value("val-core/sums/reward/mean@2"), 0.625);
  EXPECT_DOUBLE_EQ(found.sums.value("val-core/sums/reward/best@2"), 1);
  EXPECT_DOUBLE_EQ(found.sums.value("val-core/sums/pass@1"), 0.5);
  EXPECT_DOUBLE_EQ(found.sums.value("val-core/rows/reward/mean@2"), 1)
    << "a row without a source is of its file";
  EXPECT_DOUBLE_EQ(found.sums.value("val-core/rows/reward/best@2"), 4);
  const auto written = lines(found);
  ASSERT_EQ(written.size(), 4u);
  EXPECT_EQ(written[3]["score"], 4);
  EXPECT_EQ(written[3]["line"], 2);
  EXPECT_EQ(written[3]["sample"], 1);
  EXPECT_EQ(written[3]["step"], 20);
  EXPECT_EQ(written[3]["prompt"], "cd");
  EXPECT_EQ(written[3]["response"], "c");
  EXPECT_EQ(written[3]["finish_reason"], "length");
}

TEST_F(EvaluationTest, SequencesGiveTheLossInNatsPerToken) {
  const auto data = open(DataKind::sft, R"({"prompt": "a", "completion": "bc"}
{"prompt": "d", "completion": "e"}
)");
  const net::Rows rows(
    {SampleId{0}, SampleId{1}},
    {column<std::uint8_t>("loss_mask", DType::u8, {{1, 0, 1, 1}, {0, 0, 1}}),
     column<float>("eval_logprobs", DType::f32, {{9, 9, -1, -2}, {9, 9, -6}})});
  const auto tokenizer = testing::letters();
  const auto found
    = evaluate_sequences({.data = data, .tokenizer = tokenizer}, rows);
  EXPECT_DOUBLE_EQ(found.sums.value("val-core/rows/loss"), 3)
    << "the first token counts nowhere";
  EXPECT_EQ(lines(found)[0]["loss"], 1.5);
  EXPECT_EQ(lines(found)[0]["tokens"], 2);
}

TEST_F(EvaluationTest, PairsGiveTheLogisticLossAndTheAccuracy) {
  const auto data = open(DataKind::preference,
                         R"({"chosen": "ab", "rejected": "ac"}
{"chosen": "ab", "rejected": "ac"}
)");
  const net::Rows rows(
    {SampleId{0}, SampleId{1}},
    {column<float>("eval_chosen_scores", DType::f32, {{2}, {-300}}),
     column<float>("eval_rejected_scores", DType::f32, {{1}, {300}})});
  const auto tokenizer = testing::letters();
  const auto found
    = evaluate_pairs({.data = data, .tokenizer = tokenizer}, rows);
  EXPECT_DOUBLE_EQ(found.sums.value("val-core/rows/accuracy"), 0.5);
  EXPECT_NEAR(found.sums.value("val-core/rows/loss"),
              (std::log1p(std::exp(-1.0)) + 600) / 2, 1e-9);
}

TEST_F(EvaluationTest, PreferencesComparePolicyAndReferenceOnResponses) {
  const auto data = open(DataKind::preference,
                         R"({"prompt": "a", "chosen": "b", "rejected": "c"})"
                         "\n");
  const net::Rows rows(
    {SampleId{0}},
    {column<std::uint8_t>("chosen_loss_mask", DType::u8, {{0, 0, 1, 1}}),
     column<std::uint8_t>("rejected_loss_mask", DType::u8, {{0, 1, 1}}),
     column<float>("eval_chosen_logprobs", DType::f32, {{9, 9, -1, -2}}),
     column<float>("eval_chosen_ref_logprobs", DType::f32, {{7, 7, -2, -3}}),
     column<float>("eval_rejected_logprobs", DType::f32, {{9, -4, -4}}),
     column<float>("eval_rejected_ref_logprobs", DType::f32, {{7, -3, -4}})});
  const auto tokenizer = testing::letters();
  const auto found = evaluate_preferences(
    {.data = data, .tokenizer = tokenizer, .preference = {.beta = 0.5}}, rows);
  EXPECT_DOUBLE_EQ(found.sums.value("val-core/rows/reward_margin"), 1.5);
  EXPECT_DOUBLE_EQ(found.sums.value("val-core/rows/accuracy"), 1);
  EXPECT_NEAR(found.sums.value("val-core/rows/loss"),
              std::log1p(std::exp(-1.5)), 1e-12);
}

TEST_F(EvaluationTest, PreferencesHaveTheLossThatTrainingHas) {
  const auto data = open(DataKind::preference,
                         R"({"prompt": "a", "chosen": "b", "rejected": "c"})"
                         "\n");
  const net::Rows rows(
    {SampleId{0}},
    {column<std::uint8_t>("chosen_loss_mask", DType::u8, {{0, 0, 1, 1}}),
     column<std::uint8_t>("rejected_loss_mask", DType::u8, {{0, 1, 1}}),
     column<float>("eval_chosen_logprobs", DType::f32, {{9, 9, -1, -2}}),
     column<float>("eval_rejected_logprobs", DType::f32, {{9, -4, -2}})});
  const auto tokenizer = testing::letters();
  const auto loss = [&](const PreferenceSettings& preference) {
    return evaluate_preferences(
             {.data = data, .tokenizer = tokenizer, .preference = preference},
             rows)
      .sums.value("val-core/rows/loss");
  };
  // means -1.5 and -3
  EXPECT_NEAR(loss({.kind = "simpo", .beta = 2, .margin = 1}),
              std::log1p(std::exp(-2.0)), 1e-9);
  const auto odds = [](double x) { return x - std::log1p(-std::exp(x)); };
  EXPECT_NEAR(loss({.kind = "orpo", .beta = 0.5}),
              1.5 + 0.5 * std::log1p(std::exp(odds(-3) - odds(-1.5))), 1e-9);
  EXPECT_NEAR(loss({.kind = "ipo", .beta = 0.5}), (3 - 1) * (3 - 1), 1e-9);
}

TEST_F(EvaluationTest, LabelsHaveTheLossAndThePointThatTrainingHas) {
  const auto data = open(DataKind::labelled,
                         R"({"prompt": "a", "completion": "b", "label": true})"
                         "\n"
                         R"({"prompt": "a", "completion": "c", "label": false})"
                         "\n");
  const net::Rows rows(
    {SampleId{0}, SampleId{1}},
    {column<std::uint8_t>("loss_mask", DType::u8, {{0, 0, 1, 1}, {0, 1, 1}}),
     column<std::uint8_t>("desirable", DType::u8, {{1}, {0}}),
     column<float>("eval_logprobs", DType::f32, {{9, 9, -1, -2}, {9, -3, -4}}),
     column<float>("eval_ref_logprobs", DType::f32,
                   {{7, 7, -2, -3}, {7, -4, -2}}),
     column<std::uint8_t>("eval_kl_loss_mask", DType::u8,
                          {{0, 0, 1}, {0, 1, 1, 0}}),
     column<float>("eval_kl_logprobs", DType::f32,
                   {{9, 9, -1}, {9, -1, -1, 9}}),
     column<float>("eval_kl_ref_logprobs", DType::f32,
                   {{7, 7, -2}, {7, -2, -1, 7}})});
  const auto tokenizer = testing::letters();
  const auto found = evaluate_labels(
    {.data = data,
     .tokenizer = tokenizer,
     .preference
     = {.beta = 0.5, .desirable_weight = 2, .undesirable_weight = 3}},
    rows);
  const auto value = [&](const std::string& name) {
    return found.sums.value("val-core/rows/" + name);
  };
  // log-ratios 2 and -1, compared with (1 + 1) / 2
  EXPECT_DOUBLE_EQ(value("kl"), 1);
  EXPECT_NEAR(value("loss"),
              (2 / (1 + std::exp(0.5)) + 3 / (1 + std::exp(1.0))) / 2, 1e-9);
  EXPECT_DOUBLE_EQ(value("accuracy"), 1);
  EXPECT_DOUBLE_EQ(value("desirable_reward"), 1);
  EXPECT_DOUBLE_EQ(value("undesirable_reward"), -0.5);
  EXPECT_EQ(lines(found).at(1).at("label"), false);
}

TEST(FindEvaluator, KnowsOnlyItsNames) {
  EXPECT_EQ(find_evaluator("eval_pairs"), &evaluate_pairs);
  EXPECT_EQ(find_evaluator("ppo_advantages"), nullptr);
}

} // namespace
} // namespace troupe::models
