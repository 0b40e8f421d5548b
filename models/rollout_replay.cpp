#include "models/rollout_replay.hpp"

#include "config/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace troupe::models {

namespace {

using nlohmann::json;

/// A per-token column of the samples that `lengths` describes.
template <class T, class Member>
net::Column column_of(const char* key, DType dtype, Member values_of,
                      std::size_t num_samples) {
  std::vector<std::uint32_t> lengths;
  std::vector<T> packed;
  for (std::size_t i = 0; i < num_samples; ++i) {
    const auto& values = values_of(i);
    lengths.push_back(static_cast<std::uint32_t>(values.size()));
    packed.insert(packed.end(), values.begin(), values.end());
  }
  return net::make_column(key, dtype, std::move(lengths), packed.data());
}

} // namespace

RolloutReplay::RolloutReplay(const std::filesystem::path& file) : file_(file) {
  std::ifstream stream{file};
  if (!stream)
    throw ConfigError{{.place = {},
                       .path = "run.replay",
                       .expected = "a samples.jsonl file",
                       .got = fmt::format("'{}'", file.string()),
                       .hint = "the samples.jsonl of a finished run"}};
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    try {
      const json row = json::parse(line);
      Sample sample;
      row.at("sequence_ids").get_to(sample.sequence_ids);
      row.at("loss_mask").get_to(sample.loss_mask);
      row.at("logprobs").get_to(sample.logprobs);
      sample.truncated = row.at("finish_reason") == "length" ? 1 : 0;
      samples_[{StepId{row.at("step").get<std::uint32_t>() - 1},
                SampleId{row.at("sample").get<std::uint32_t>()}}]
        = std::move(sample);
    } catch (const json::exception& error) {
      throw ConfigError{
        Place{file.string(), number},
        fmt::format("is no recorded sample ({})", error.what())};
    }
  }
}

std::size_t RolloutReplay::num_samples(StepId step) const {
  const auto first = samples_.lower_bound({step, SampleId{0}});
  const auto next = samples_.lower_bound({StepId{step.value + 1}, SampleId{0}});
  return static_cast<std::size_t>(std::distance(first, next));
}

net::Rows RolloutReplay::rows(StepId step,
                              std::span<const SampleId> samples) const {
  std::vector<const Sample*> found;
  for (const SampleId id : samples) {
    const auto entry = samples_.find({step, id});
    if (entry == samples_.end())
      throw ConfigError{
        Place{file_.string(), 0},
        fmt::format("has no sample {} of step {}; replay a run with the same "
                    "data, batch size and rollout.n",
                    id.value, step.value + 1)};
    found.push_back(&entry->second);
  }
  const auto count = found.size();
  const std::vector<std::uint32_t> ones(count, 1);
  std::vector<std::uint8_t> truncated;
  for (const auto* sample : found)
    truncated.push_back(sample->truncated);
  std::vector<net::Column> columns;
  columns.push_back(column_of<std::int32_t>(
    "sequence_ids",
    DType::i32, [&](std::size_t i) -> auto& { return found[i]->sequence_ids; },
    count));
  columns.push_back(column_of<std::uint8_t>(
    "loss_mask",
    DType::u8, [&](std::size_t i) -> auto& { return found[i]->loss_mask; },
    count));
  columns.push_back(column_of<float>(
    "logprobs",
    DType::f32, [&](std::size_t i) -> auto& { return found[i]->logprobs; },
    count));
  columns.push_back(
    net::make_column("truncated", DType::u8, ones, truncated.data()));
  return {{samples.begin(), samples.end()}, std::move(columns)};
}

} // namespace troupe::models
