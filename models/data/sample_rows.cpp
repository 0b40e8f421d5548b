#include "models/data/sample_rows.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace troupe::models {

namespace {

constexpr std::array token_keys
  = {"prompt_ids",  "sequence_ids",       "loss_mask",
     "chosen_ids",  "chosen_loss_mask",   "rejected_ids",
     "pair_margin", "rejected_loss_mask", "desirable"};

DType dtype_of(KeyType type) {
  if (type == KeyType::f32)
    return DType::f32;
  return type == KeyType::i32 ? DType::i32 : DType::u8;
}

std::size_t element_bytes(KeyType type) {
  return type == KeyType::f32 || type == KeyType::i32 ? 4 : 1;
}

/// Returns the bytes of the i-th sample of a column.
std::string bytes_of(const net::Column& column, std::size_t i) {
  const auto width = size_bytes(column.dtype);
  const auto first = column.offsets()[i] * width;
  return {reinterpret_cast<const char*>(column.data.data()) + first,
          column.lengths[i] * width};
}

/// Returns the text of the model's own tokens, in order.
std::string response_of(const net::Rows& rows, std::size_t i,
                        const KeyInfo& key, const Tokenizer& tokenizer) {
  const auto prefix = detail::response_prefix(key);
  TROUPE_CHECK(prefix.has_value(), "rows have no column " + key.name);
  const auto& ids = rows.at(*prefix + "sequence_ids");
  const auto& mask = rows.at(*prefix + "loss_mask");
  const auto first = ids.offsets()[i];
  std::vector<std::int32_t> own;
  for (std::uint32_t t = 0; t < ids.lengths[i]; ++t)
    if (mask.as<std::uint8_t>()[first + t] != 0)
      own.push_back(ids.as<std::int32_t>()[first + t]);
  return tokenizer.decode(own);
}

/// Returns true unless a per-sample number has another size than one element.
bool has_whole_elements(const Sample::Entry& entry, const KeyInfo& key) {
  return key.type == KeyType::text || key.per == Per::token
         || entry.bytes.size() == element_bytes(key.type);
}

net::Column column_of(std::span<const Sample> samples, const KeyInfo& key,
                      const std::string& who) {
  std::vector<std::uint32_t> lengths;
  std::string packed;
  for (const Sample& sample : samples) {
    const auto& entries = sample.entries();
    const auto at = std::ranges::find(entries, key.name, &Sample::Entry::key);
    if (at == entries.end())
      throw FailureError{{.code = Errc::bad_input,
                          .who = who,
                          .what = fmt::format("sample {} was returned "
                                              "without {}",
                                              sample.id(), key.name),
                          .cause = ""}};
    if (at->type != static_cast<std::uint8_t>(key.type)
        || !has_whole_elements(*at, key))
      throw FailureError{
        {.code = Errc::bad_input,
         .who = who,
         .what = fmt::format("sample {} was returned with {} of another "
                             "type than in writes()",
                             sample.id(), key.name),
         .cause = ""}};
    packed += at->bytes;
    lengths.push_back(
      static_cast<std::uint32_t>(at->bytes.size() / element_bytes(key.type)));
  }
  return net::make_column(key.name, dtype_of(key.type), std::move(lengths),
                          packed.data());
}

} // namespace

std::vector<Sample> samples_of_rows(const net::Rows& rows,
                                    std::span<const KeyInfo> reads,
                                    std::uint32_t samples_per_group,
                                    const Tokenizer& tokenizer) {
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < rows.num_samples(); ++i) {
    const auto id = rows.samples[i].value;
    Sample& sample = samples.emplace_back(id, id / samples_per_group);
    for (const KeyInfo& key : reads)
      sample.entries().push_back({key.name, static_cast<std::uint8_t>(key.type),
                                  rows.has(key.name)
                                    ? bytes_of(rows.at(key.name), i)
                                    : response_of(rows, i, key, tokenizer)});
  }
  return samples;
}

net::Rows rows_of_samples(std::span<const Sample> samples,
                          std::span<const KeyInfo> writes,
                          const std::string& who) {
  net::Rows rows;
  for (const Sample& sample : samples)
    rows.samples.emplace_back(sample.id());
  for (const KeyInfo& key : writes)
    rows.add(column_of(samples, key, who));
  return rows;
}

std::vector<std::string> text_keys(std::span<const std::string> keys) {
  std::vector<std::string> texts;
  for (const std::string& key : keys)
    if (std::ranges::find(token_keys, key) == token_keys.end())
      texts.push_back(key);
  return texts;
}

std::vector<net::Column> text_columns(const Dataset& dataset,
                                      std::span<const std::uint32_t> rows,
                                      std::span<const std::string> keys) {
  std::vector<net::Column> columns;
  for (const std::string& key : text_keys(keys)) {
    std::vector<std::uint32_t> lengths;
    std::string packed;
    for (const std::uint32_t row : rows) {
      const std::string text = dataset.field(row, key).value_or("");
      lengths.push_back(static_cast<std::uint32_t>(text.size()));
      packed += text;
    }
    columns.push_back(
      net::make_column(key, DType::u8, std::move(lengths), packed.data()));
  }
  return columns;
}

} // namespace troupe::models
