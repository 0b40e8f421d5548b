// N samples, E elements in a column.
#include "net/base/rows.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

namespace troupe::net {

namespace {

using SamplePlaces = std::unordered_map<SampleId, std::size_t>;

SamplePlaces places_of(std::span<const SampleId> samples) {
  SamplePlaces places;
  places.reserve(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i)
    TROUPE_CHECK(places.emplace(samples[i], i).second,
                 "sample " + to_string(samples[i]) + " comes twice");
  return places;
}

void validate_column(const Column& column, std::size_t num_samples) {
  TROUPE_CHECK(column.lengths.size() == num_samples,
               "column " + column.key + " has "
                 + std::to_string(column.lengths.size()) + " lengths for "
                 + std::to_string(num_samples) + " samples");
  const std::uint64_t bytes
    = column.num_elements() * troupe::size_bytes(column.dtype);
  TROUPE_CHECK(column.data.size_bytes() == bytes,
               "column " + column.key + " has "
                 + std::to_string(column.data.size_bytes())
                 + " bytes instead of " + std::to_string(bytes));
}

/// One sample of a column as bytes.
struct SampleBytes {
  const std::byte* data;
  std::size_t size_bytes;
  std::uint32_t length;
};

SampleBytes sample_bytes(const Column& column,
                         const std::vector<std::uint64_t>& offsets,
                         std::size_t place) {
  const std::size_t width = troupe::size_bytes(column.dtype);
  const std::uint32_t length = column.lengths[place];
  return {column.data.data() + offsets[place] * width, length * width, length};
}

Column pack_column(const std::string& key, DType dtype,
                   const std::vector<SampleBytes>& parts) {
  std::vector<std::uint32_t> lengths;
  lengths.reserve(parts.size());
  for (const SampleBytes& part : parts)
    lengths.push_back(part.length);
  Column column = make_column(key, dtype, std::move(lengths));
  std::byte* target = column.data.data();
  for (const SampleBytes& part : parts) {
    if (part.size_bytes == 0)
      continue;
    std::memcpy(target, part.data, part.size_bytes);
    target += part.size_bytes;
  }
  return column;
}

/// Source of each sample of the result.
struct PartPlace {
  SampleId sample;
  std::size_t part;
  std::size_t place;
};

std::vector<PartPlace> sorted_places(std::span<const Rows> parts) {
  std::vector<PartPlace> places;
  for (std::size_t part = 0; part < parts.size(); ++part)
    for (std::size_t i = 0; i < parts[part].num_samples(); ++i)
      places.push_back({parts[part].samples[i], part, i});
  std::sort(
    places.begin(), places.end(),
    [](const PartPlace& a, const PartPlace& b) { return a.sample < b.sample; });
  for (std::size_t i = 1; i < places.size(); ++i)
    TROUPE_CHECK(places[i - 1].sample != places[i].sample,
                 "sample " + to_string(places[i].sample)
                   + " is in two of the parts");
  return places;
}

Column concat_column(std::span<const Rows> parts, const Column& model,
                     const std::vector<PartPlace>& places) {
  std::vector<const Column*> columns;
  std::vector<std::vector<std::uint64_t>> offsets;
  for (const Rows& part : parts) {
    const Column& column = part.at(model.key);
    TROUPE_CHECK(column.dtype == model.dtype,
                 "column " + model.key + " has two types");
    columns.push_back(&column);
    offsets.push_back(column.offsets());
  }
  std::vector<SampleBytes> packed;
  packed.reserve(places.size());
  for (const PartPlace& from : places)
    packed.push_back(
      sample_bytes(*columns[from.part], offsets[from.part], from.place));
  return pack_column(model.key, model.dtype, packed);
}

} // namespace

std::vector<std::uint64_t> Column::offsets() const {
  std::vector<std::uint64_t> result;
  result.reserve(lengths.size() + 1);
  std::uint64_t next = 0;
  result.push_back(next);
  for (std::uint32_t length : lengths)
    result.push_back(next += length);
  return result;
}

std::uint64_t Column::num_elements() const {
  std::uint64_t sum = 0;
  for (std::uint32_t length : lengths)
    sum += length;
  return sum;
}

void Column::check_element_size(std::size_t bytes) const {
  TROUPE_CHECK(bytes == troupe::size_bytes(dtype),
               "column " + key + " has elements of "
                 + std::string(to_string(dtype)) + ", not of "
                 + std::to_string(bytes) + " bytes");
}

Column make_column(std::string key, DType dtype,
                   std::vector<std::uint32_t> lengths) {
  Column column{std::move(key), dtype, std::move(lengths), {}};
  column.data = make_buffer(column.num_elements() * size_bytes(dtype));
  return column;
}

Column make_column(std::string key, DType dtype,
                   std::vector<std::uint32_t> lengths, const void* packed) {
  Column column = make_column(std::move(key), dtype, std::move(lengths));
  if (!column.data.empty())
    std::memcpy(column.data.data(), packed, column.data.size_bytes());
  return column;
}

Rows::Rows(std::vector<SampleId> samples_in, std::vector<Column> columns_in)
  : samples(std::move(samples_in)),
    columns(std::move(columns_in)) {
  validate(*this);
}

const Column& Rows::at(std::string_view key) const {
  for (const Column& column : columns)
    if (column.key == key)
      return column;
  std::string there;
  for (const Column& column : columns)
    there += " " + column.key;
  throw InvariantError("no key '" + std::string(key) + "' among:" + there);
}

bool Rows::has(std::string_view key) const noexcept {
  return std::any_of(columns.begin(), columns.end(),
                     [&](const Column& column) { return column.key == key; });
}

std::uint64_t Rows::size_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const Column& column : columns)
    sum += column.data.size_bytes();
  return sum;
}

void Rows::add(Column column) {
  TROUPE_CHECK(!has(column.key), "key " + column.key + " is already there");
  validate_column(column, samples.size());
  columns.push_back(std::move(column));
}

void validate(const Rows& rows) {
  places_of(rows.samples);
  std::unordered_set<std::string_view> keys;
  for (const Column& column : rows.columns) {
    TROUPE_CHECK(keys.insert(column.key).second,
                 "key " + column.key + " comes twice");
    validate_column(column, rows.num_samples());
  }
}

Rows select(const Rows& rows, std::span<const SampleId> samples) {
  if (std::equal(samples.begin(), samples.end(), rows.samples.begin(),
                 rows.samples.end()))
    return rows;
  const SamplePlaces places = places_of(rows.samples);
  std::vector<std::size_t> from;
  from.reserve(samples.size());
  for (SampleId sample : samples) {
    auto found = places.find(sample);
    TROUPE_CHECK(found != places.end(),
                 "sample " + to_string(sample) + " is not in these rows");
    from.push_back(found->second);
  }
  Rows result;
  result.samples.assign(samples.begin(), samples.end());
  for (const Column& column : rows.columns) {
    const std::vector<std::uint64_t> offsets = column.offsets();
    std::vector<SampleBytes> packed;
    packed.reserve(from.size());
    for (std::size_t place : from)
      packed.push_back(sample_bytes(column, offsets, place));
    result.columns.push_back(pack_column(column.key, column.dtype, packed));
  }
  return result;
}

Rows select_keys(const Rows& rows, std::span<const std::string> keys) {
  Rows result;
  result.samples = rows.samples;
  for (const std::string& key : keys)
    result.add(rows.at(key));
  return result;
}

Rows concat(std::span<const Rows> parts) {
  if (parts.empty())
    return {};
  for (const Rows& part : parts)
    TROUPE_CHECK(part.columns.size() == parts[0].columns.size(),
                 "parts have different keys");
  const std::vector<PartPlace> places = sorted_places(parts);
  Rows result;
  result.samples.reserve(places.size());
  for (const PartPlace& from : places)
    result.samples.push_back(from.sample);
  if (parts.size() == 1 && result.samples == parts[0].samples)
    return parts[0];
  for (const Column& model : parts[0].columns)
    result.columns.push_back(concat_column(parts, model, places));
  return result;
}

Rows merge(std::span<const Rows> parts) {
  if (parts.empty())
    return {};
  Rows result = parts[0];
  for (const Rows& part : parts.subspan(1)) {
    TROUPE_CHECK(part.num_samples() == result.num_samples(),
                 "parts have different samples");
    Rows ordered = select(part, result.samples);
    for (Column& column : ordered.columns)
      result.add(std::move(column));
  }
  return result;
}

} // namespace troupe::net
