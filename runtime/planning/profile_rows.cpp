#include "runtime/planning/profile_rows.hpp"

#include "actors/worker_base/call_options.hpp"
#include "config/base/error.hpp"
#include "models/data/dataset.hpp"
#include "runtime/run_folder/session_inputs.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

namespace troupe::runtime {

namespace {

/// Rows of data.train from which prompt lengths are estimated.
constexpr std::uint32_t rows_to_read = 256;
constexpr std::int32_t first_plain_token = 3;

/// Returns the mean tokens of a data set's first rows; nothing if it cannot be
/// read.
std::optional<double> mean_tokens(const Settings& settings,
                                  const plans::Workflow& workflow) try {
  const auto tokenizer
    = models::Tokenizer::load(tokenizer_folder(settings, workflow));
  auto options = models::train_options(settings);
  options.first_rows = rows_to_read;
  const auto dataset = models::Dataset::open(options, tokenizer);
  std::vector<std::uint32_t> indices(dataset.size());
  std::iota(indices.begin(), indices.end(), 0U);
  const auto rows = dataset.rows(indices, SampleId{0});
  double tokens = 0, texts = 0;
  for (const auto& column : rows.columns)
    if (column.key.ends_with("_ids")) {
      tokens += static_cast<double>(column.num_elements());
      texts += static_cast<double>(column.lengths.size());
    }
  return texts > 0 ? std::optional(tokens / texts) : std::nullopt;
} catch (const ConfigError&) {
  return std::nullopt;
}

std::uint32_t whole_tokens(double tokens, std::int64_t limit) {
  const auto most = static_cast<double>(std::max<std::int64_t>(limit, 1));
  return static_cast<std::uint32_t>(std::clamp(tokens + 0.5, 1.0, most));
}

} // namespace

SampleLengths run_lengths(const Settings& settings,
                          const plans::Workflow& workflow) {
  const auto mean = mean_tokens(settings, workflow);
  SampleLengths lengths;
  lengths.samples_a_prompt
    = actors::samples_per_row(settings, workflow, /*evaluates=*/false);
  const std::int64_t limit = workflow.samples_are_prompts
                               ? settings.data.max_prompt_tokens
                               : settings.data.max_tokens;
  const auto tokens
    = whole_tokens(mean.value_or(static_cast<double>(limit)), limit);
  if (!workflow.samples_are_prompts) {
    lengths.response = tokens;
    return lengths;
  }
  lengths.prompt = tokens;
  lengths.response
    = static_cast<std::uint32_t>(settings.rollout.max_new_tokens);
  return lengths;
}

std::vector<std::int32_t> ProfileRows::tokens(std::uint32_t samples,
                                              std::uint32_t length,
                                              std::uint32_t seed) const {
  std::vector<std::int32_t> ids;
  const std::int64_t last = std::max<std::int64_t>(vocab_size_ - 1, 0);
  std::uniform_int_distribution<std::int32_t> any(
    static_cast<std::int32_t>(std::min<std::int64_t>(first_plain_token, last)),
    static_cast<std::int32_t>(last));
  for (std::uint32_t i = 0; i < samples; ++i) {
    std::mt19937 of_prompt(seed + i / lengths_.samples_a_prompt);
    std::mt19937 of_sample(~(seed + i));
    for (std::uint32_t at = 0; at < length; ++at)
      ids.push_back(any(at < lengths_.prompt ? of_prompt : of_sample));
  }
  return ids;
}

net::Rows ProfileRows::prompts(std::uint32_t samples) const {
  net::Rows rows;
  for (std::uint32_t i = 0; i < samples; ++i)
    rows.samples.emplace_back(std::uint64_t{i});
  const std::vector<std::uint32_t> lengths(samples, lengths_.prompt);
  rows.add(net::make_column("prompt_ids", DType::i32, lengths,
                            tokens(samples, lengths_.prompt, 1).data()));
  return rows;
}

net::Rows ProfileRows::sequences(std::uint32_t samples, bool pairs) const {
  net::Rows rows;
  for (std::uint32_t i = 0; i < samples; ++i)
    rows.samples.emplace_back(std::uint64_t{i});
  const auto length = lengths_.sequence();
  const std::vector<std::uint32_t> lengths(samples, length);
  std::vector<std::uint8_t> mask;
  for (std::uint32_t i = 0; i < samples * length; ++i)
    mask.push_back(i % length >= lengths_.prompt ? 1 : 0);
  const auto add
    = [&](const std::string& prefix, const char* ids, std::uint32_t seed) {
        rows.add(net::make_column(prefix + ids, DType::i32, lengths,
                                  tokens(samples, length, seed).data()));
        rows.add(net::make_column(prefix + "loss_mask", DType::u8, lengths,
                                  mask.data()));
      };
  if (!pairs) {
    add("", "sequence_ids", 1);
    return rows;
  }
  add("chosen_", "ids", 1);
  add("rejected_", "ids", samples + 1);
  return rows;
}

void ProfileRows::add_floats(net::Rows& rows, const std::string& key) const {
  const auto samples = rows.num_samples();
  const std::vector<std::uint32_t> lengths(samples, lengths_.sequence());
  std::vector<float> numbers(samples * lengths_.sequence());
  std::mt19937 random(samples);
  std::normal_distribution<float> normal;
  for (auto& number : numbers)
    number = normal(random);
  rows.add(net::make_column(key, DType::f32, lengths, numbers.data()));
}

} // namespace troupe::runtime
