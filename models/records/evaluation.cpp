#include "models/records/evaluation.hpp"

#include "config/settings/settings.hpp"
#include "models/rl/kto_functions.hpp"
#include "models/text/stop_texts.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>

namespace troupe::models {

namespace {

using EvalJson = nlohmann::ordered_json;

template <class T>
std::span<const T> eval_part(const net::Column& column,
                             const std::vector<std::uint64_t>& offsets,
                             std::size_t i) {
  return column.as<T>().subspan(offsets[i], column.lengths[i]);
}

/// The common start of all lines, and the group of their numbers.
struct EvalRow {
  std::uint32_t row = 0;
  std::uint32_t sample = 0;
  RowText text;
  std::string source;
  EvalJson line;
};

EvalRow eval_row(const EvaluationSource& source, const net::Rows& rows,
                 std::size_t i) {
  EvalRow at;
  at.row = rows.samples[i].value / source.samples_per_row;
  at.sample = rows.samples[i].value % source.samples_per_row;
  at.text = source.data.text(at.row);
  at.source = at.text.data_source;
  if (at.source.empty())
    at.source = std::filesystem::path(source.data.file()).stem().string();
  at.line["step"] = source.step.value;
  at.line["line"] = at.text.line;
  at.line["sample"] = at.sample;
  at.line["data_source"] = at.source;
  return at;
}

void add_line(Evaluation& evaluation, const EvalJson& line) {
  evaluation.lines
    += line.dump(-1, ' ', false, EvalJson::error_handler_t::replace) + "\n";
}

std::string eval_name(const EvalRow& at, const std::string& what) {
  return "val-core/" + at.source + "/" + what;
}

/// Returns -log sigmoid(margin) without overflow.
double logistic_loss(double margin) {
  return std::max(-margin, 0.0) + std::log1p(std::exp(-std::fabs(margin)));
}

/// A response's tokens: their number, and the sum of log p, less log p_ref
/// where a reference model computed it.
struct ResponseSum {
  double logprob = 0;
  double tokens = 0;

  double mean() const {
    return tokens == 0 ? 0.0 : logprob / tokens;
  }
};

/// Returns the sum of one side of pair i.
ResponseSum response_sum(const net::Rows& rows, const std::string& side,
                         std::size_t i) {
  const auto& masks = rows.at(side + "loss_mask");
  const auto offsets = masks.offsets();
  const auto mask = eval_part<std::uint8_t>(masks, offsets, i);
  const auto policy
    = eval_part<float>(rows.at("eval_" + side + "logprobs"), offsets, i);
  const auto reference_key = "eval_" + side + "ref_logprobs";
  const auto reference
    = rows.has(reference_key)
        ? eval_part<float>(rows.at(reference_key), offsets, i)
        : std::span<const float>{};
  ResponseSum found;
  for (std::size_t t = 1; t < mask.size(); ++t)
    if (mask[t] != 0) {
      found.logprob
        += double{policy[t]} - (reference.empty() ? 0.0 : reference[t]);
      found.tokens += 1;
    }
  return found;
}

/// Returns the reward of a response as the loss of the pair has it
/// (models/losses/dpo.hpp).
double pair_reward(const PreferenceSettings& preference,
                   const ResponseSum& response) {
  if (preference.kind == "simpo")
    return preference.beta * response.mean();
  if (preference.kind == "orpo") {
    const double mean = std::min(response.mean(), -1e-6);
    return mean - std::log1p(-std::exp(mean));
  }
  return preference.beta * response.logprob;
}

/// Returns the loss of a pair whose chosen reward is larger by `margin`.
double preference_loss(const PreferenceSettings& preference, double margin,
                       const ResponseSum& chosen) {
  if (preference.kind == "ipo") {
    const double miss
      = margin / preference.beta - 1.0 / (2.0 * preference.beta);
    return miss * miss;
  }
  if (preference.kind == "simpo")
    return logistic_loss(margin - preference.margin);
  if (preference.kind == "orpo")
    return preference.beta * logistic_loss(margin) - chosen.mean();
  const double wrong = preference.label_smoothing;
  return (1.0 - wrong) * logistic_loss(margin) + wrong * logistic_loss(-margin);
}

/// Returns the samples in order, so that those of a row are adjacent.
std::vector<std::size_t> in_sample_order(const net::Rows& rows) {
  std::vector<std::size_t> order(rows.num_samples());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return rows.samples[i]; });
  return order;
}

} // namespace

DatasetOptions evaluation_options(const Settings& settings) {
  DatasetOptions options = train_options(settings);
  options.files = {settings.eval.data};
  return options;
}

Evaluation evaluate_responses(const EvaluationSource& source,
                              const net::Rows& rows) {
  const auto& ids = rows.at("eval_sequence_ids");
  const auto& masks = rows.at("eval_loss_mask");
  const auto scores = rows.at("eval_scores").as<float>();
  const auto truncated = rows.at("eval_truncated").as<std::uint8_t>();
  const auto offsets = ids.offsets();
  const auto at_n = "@" + std::to_string(source.samples_per_row);
  Evaluation found;
  double best = 0;
  for (const auto i : in_sample_order(rows)) {
    auto at = eval_row(source, rows, i);
    const auto mask = eval_part<std::uint8_t>(masks, offsets, i);
    const auto prompt
      = static_cast<std::size_t>(std::ranges::find(mask, 1) - mask.begin());
    const auto response
      = eval_part<std::int32_t>(ids, offsets, i).subspan(prompt);
    at.line["prompt"] = at.text.prompt;
    at.line["response"] = source.tokenizer.decode(response);
    at.line["score"] = scores[i];
    at.line["finish_reason"]
      = finish_reason(truncated[i] != 0, response, source.tokenizer);
    add_line(found, at.line);
    found.sums.add(eval_name(at, "reward/mean" + at_n), scores[i], 1);
    found.sums.add(eval_name(at, "pass@1"), scores[i] >= source.pass_at ? 1 : 0,
                   1);
    best = at.sample == 0 ? scores[i] : std::max<double>(best, scores[i]);
    if (at.sample + 1 == source.samples_per_row)
      found.sums.add(eval_name(at, "reward/best" + at_n), best, 1);
  }
  return found;
}

Evaluation evaluate_sequences(const EvaluationSource& source,
                              const net::Rows& rows) {
  const auto& masks = rows.at("loss_mask");
  const auto& logprobs = rows.at("eval_logprobs");
  const auto offsets = masks.offsets();
  Evaluation found;
  for (const auto i : in_sample_order(rows)) {
    auto at = eval_row(source, rows, i);
    const auto mask = eval_part<std::uint8_t>(masks, offsets, i);
    const auto logprob = eval_part<float>(logprobs, offsets, i);
    double nats = 0;
    std::uint32_t tokens = 0;
    for (std::size_t t = 1; t < mask.size(); ++t) // token 0: not predicted
      if (mask[t] != 0) {
        nats -= logprob[t];
        ++tokens;
      }
    at.line["loss"] = tokens == 0 ? 0.0 : nats / tokens;
    at.line["tokens"] = tokens;
    add_line(found, at.line);
    found.sums.add(eval_name(at, "loss"), nats, tokens);
  }
  return found;
}

Evaluation evaluate_pairs(const EvaluationSource& source,
                          const net::Rows& rows) {
  const auto chosen = rows.at("eval_chosen_scores").as<float>();
  const auto rejected = rows.at("eval_rejected_scores").as<float>();
  Evaluation found;
  for (const auto i : in_sample_order(rows)) {
    auto at = eval_row(source, rows, i);
    const double margin = double{chosen[i]} - double{rejected[i]};
    const double wanted
      = rows.has("pair_margin") ? rows.at("pair_margin").as<float>()[i] : 0;
    const double sum = double{chosen[i]} + double{rejected[i]};
    at.line["chosen_score"] = chosen[i];
    at.line["rejected_score"] = rejected[i];
    add_line(found, at.line);
    found.sums.add(eval_name(at, "loss"),
                   logistic_loss(margin - wanted)
                     + source.preference.center_coef * sum * sum,
                   1);
    found.sums.add(eval_name(at, "accuracy"), margin > 0 ? 1 : 0, 1);
  }
  return found;
}

Evaluation evaluate_preferences(const EvaluationSource& source,
                                const net::Rows& rows) {
  Evaluation found;
  for (const auto i : in_sample_order(rows)) {
    auto at = eval_row(source, rows, i);
    const auto of_chosen = response_sum(rows, "chosen_", i);
    const double chosen = pair_reward(source.preference, of_chosen);
    const double rejected
      = pair_reward(source.preference, response_sum(rows, "rejected_", i));
    const double margin = chosen - rejected;
    at.line["chosen_reward"] = chosen;
    at.line["rejected_reward"] = rejected;
    add_line(found, at.line);
    found.sums.add(eval_name(at, "loss"),
                   preference_loss(source.preference, margin, of_chosen), 1);
    found.sums.add(eval_name(at, "accuracy"), margin > 0 ? 1 : 0, 1);
    found.sums.add(eval_name(at, "reward_margin"), margin, 1);
  }
  return found;
}

Evaluation evaluate_labels(const EvaluationSource& source,
                           const net::Rows& rows) {
  const auto desirable = rows.at("desirable").as<std::uint8_t>();
  const auto& preference = source.preference;
  const double point = kto_point(rows, "eval_");
  Evaluation found;
  for (const auto i : in_sample_order(rows)) {
    const auto response = response_sum(rows, "", i);
    if (response.tokens == 0) // as in training, it is no response
      continue;
    auto at = eval_row(source, rows, i);
    const bool good = desirable[i] != 0;
    const double ahead = (good ? 1 : -1) * (response.logprob - point);
    const double weight
      = good ? preference.desirable_weight : preference.undesirable_weight;
    const double reward = preference.beta * response.logprob;
    at.line["label"] = good;
    at.line["reward"] = reward;
    add_line(found, at.line);
    found.sums.add(eval_name(at, "loss"),
                   weight / (1 + std::exp(preference.beta * ahead)), 1);
    found.sums.add(eval_name(at, "accuracy"),
                   (response.logprob > point) == good ? 1 : 0, 1);
    found.sums.add(
      eval_name(at, good ? "desirable_reward" : "undesirable_reward"), reward,
      1);
    found.sums.add(eval_name(at, "kl"), point, 1);
  }
  return found;
}

Evaluator find_evaluator(std::string_view fn) {
  struct Entry {
    std::string_view fn;
    Evaluator evaluator;
  };
  constexpr std::array entries{Entry{"eval_answers", &evaluate_responses},
                               Entry{"eval_sequences", &evaluate_sequences},
                               Entry{"eval_pairs", &evaluate_pairs},
                               Entry{"eval_preferences", &evaluate_preferences},
                               Entry{"eval_labels", &evaluate_labels}};
  const auto at = std::ranges::find(entries, fn, &Entry::fn);
  return at == entries.end() ? nullptr : at->evaluator;
}

} // namespace troupe::models
