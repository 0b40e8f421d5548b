// Tensors of entry i: "i.samples" [N], and for each key "i.data.KEY" [E] and
// "i.lengths.KEY" [N]; the entry's step is in the metadata under "i".
#include "models/records/row_file.hpp"

#include "models/hf/safetensors.hpp"

#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <string>

namespace troupe::models {

namespace {

using Numbers = std::vector<std::int32_t>;

template <class Values>
Numbers numbers_of(const Values& values) {
  Numbers numbers;
  for (const auto& value : values)
    numbers.push_back(static_cast<std::int32_t>(value));
  return numbers;
}

Numbers sample_numbers(const std::vector<SampleId>& samples) {
  Numbers numbers;
  for (const auto sample : samples)
    numbers.push_back(static_cast<std::int32_t>(sample.value));
  return numbers;
}

TensorToStore stored(std::string name, const Numbers& numbers) {
  return {.name = std::move(name),
          .shape = {static_cast<std::int64_t>(numbers.size())},
          .type = DType::i32,
          .stored = DType::i32,
          .data = std::as_bytes(std::span{numbers})};
}

TensorToStore stored(std::string name, const net::Column& column) {
  return {.name = std::move(name),
          .shape = {static_cast<std::int64_t>(column.num_elements())},
          .type = column.dtype,
          .stored = column.dtype,
          .data = {column.data.data(), column.data.size_bytes()}};
}

std::vector<std::uint32_t> read_numbers(const StoredTensor& tensor) {
  std::vector<std::uint32_t> numbers(
    static_cast<std::size_t>(tensor.num_elements()));
  tensor.copy_to(DType::i32, std::as_writable_bytes(std::span{numbers}));
  return numbers;
}

StepRows read_entry(const SafetensorsFile& file, const std::string& entry,
                    const std::string& step) {
  std::vector<SampleId> samples;
  for (const auto number : read_numbers(file.at(entry + ".samples")))
    samples.emplace_back(number);
  std::vector<net::Column> columns;
  const auto prefix = entry + ".data.";
  for (const auto& tensor : file.tensors()) {
    if (!tensor.name.starts_with(prefix))
      continue;
    const auto key = tensor.name.substr(prefix.size());
    columns.push_back(net::make_column(
      key, tensor.type(), read_numbers(file.at(entry + ".lengths." + key))));
    auto& data = columns.back().data;
    tensor.copy_to(tensor.type(), {data.data(), data.size_bytes()});
  }
  return {StepId{std::stoull(step)}, {std::move(samples), std::move(columns)}};
}

} // namespace

std::uint64_t write_row_file(const std::filesystem::path& path,
                             std::span<const StepRows> all) {
  std::deque<Numbers> kept; // storage of the tensors below
  std::vector<TensorToStore> tensors;
  StoreOptions options{.metadata = {}};
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [step, rows] = all[i];
    bytes += rows.size_bytes();
    options.metadata[std::to_string(i)] = to_string(step);
    kept.push_back(sample_numbers(rows.samples));
    tensors.push_back(stored(fmt::format("{}.samples", i), kept.back()));
    for (const auto& column : rows.columns) {
      kept.push_back(numbers_of(column.lengths));
      tensors.push_back(
        stored(fmt::format("{}.lengths.{}", i, column.key), kept.back()));
      tensors.push_back(
        stored(fmt::format("{}.data.{}", i, column.key), column));
    }
  }
  write_safetensors(path, tensors, options);
  return bytes;
}

std::vector<StepRows> read_row_file(const std::filesystem::path& path) {
  const auto file = SafetensorsFile::open(path);
  const auto& steps = file.metadata();
  std::vector<StepRows> all;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto entry = std::to_string(i);
    const auto step = steps.find(entry);
    if (step == steps.end())
      throw ConfigError{Place{path.string(), 0}, "is no file of rows"};
    all.push_back(read_entry(file, entry, step->second));
  }
  return all;
}

} // namespace troupe::models
