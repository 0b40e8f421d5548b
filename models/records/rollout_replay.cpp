#include "models/records/rollout_replay.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <limits>

namespace troupe::models {

namespace {

using nlohmann::json;

/// Returns a per-token column of the samples that `lengths` describes.
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

template <class T>
std::string bytes_of(const json& numbers) {
  std::string bytes;
  for (const json& number : numbers) {
    // in JSON, null means NaN
    const T value = number.is_null() ? std::numeric_limits<T>::quiet_NaN()
                                     : number.get<T>();
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

std::string bytes_of(const json& value, KeyType type) {
  if (type == KeyType::text)
    return value.get<std::string>();
  if (type == KeyType::f32)
    return bytes_of<float>(value);
  return type == KeyType::i32 ? bytes_of<std::int32_t>(value)
                              : bytes_of<std::uint8_t>(value);
}

} // namespace

RolloutReplay::RolloutReplay(const std::filesystem::path& file,
                             std::vector<KeyInfo> keys,
                             const std::function<void(int)>& on_line)
  : file_(file),
    keys_(std::move(keys)) {
  std::ifstream stream{file};
  if (!stream)
    throw ConfigError{{.place = {},
                       .path = "run.replay",
                       .expected = "a samples.jsonl file",
                       .got = fmt::format("'{}'", file.string()),
                       .hint = "the samples.jsonl of a finished run"}};
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    if (on_line)
      on_line(number);
    try {
      const json row = json::parse(line);
      Sample sample;
      row.at("sequence_ids").get_to(sample.sequence_ids);
      row.at("loss_mask").get_to(sample.loss_mask);
      row.at("logprobs").get_to(sample.logprobs);
      sample.truncated = row.at("finish_reason") == "length" ? 1 : 0;
      for (const KeyInfo& key : keys_)
        sample.values.push_back(
          bytes_of(row.at("keys").at(key.name), key.type));
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

net::Column RolloutReplay::value_column(std::span<const Sample* const> samples,
                                        std::size_t key) const {
  const auto type = keys_[key].type;
  const auto dtype = type == KeyType::f32   ? DType::f32
                     : type == KeyType::i32 ? DType::i32
                                            : DType::u8;
  std::vector<std::uint32_t> lengths;
  std::string packed;
  for (const auto* sample : samples) {
    const auto& bytes = sample->values[key];
    lengths.push_back(
      static_cast<std::uint32_t>(bytes.size() / size_bytes(dtype)));
    packed += bytes;
  }
  return net::make_column(keys_[key].name, dtype, std::move(lengths),
                          packed.data());
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
                    id.value, step_number(step))};
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
  for (std::size_t key = 0; key < keys_.size(); ++key)
    columns.push_back(value_column(found, key));
  return {{samples.begin(), samples.end()}, std::move(columns)};
}

} // namespace troupe::models
