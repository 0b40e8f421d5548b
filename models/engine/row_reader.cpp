#include "models/engine/row_reader.hpp"

#include "config/base/defaults.hpp"
#include "config/base/error.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>

namespace troupe::models {

namespace {

template <class T>
void row_reader_convert(const net::Column& column, std::uint64_t first,
                        std::int64_t count, float* to) {
  const T* from = column.as<T>().data() + first;
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = static_cast<float>(from[i]);
}

} // namespace

ColumnReader::ColumnReader(const net::Column& column)
  : column_(column),
    offsets_(column.offsets()) {}

std::span<const std::int32_t> ColumnReader::ids(std::size_t row) const {
  TROUPE_CHECK(column_.dtype == DType::i32,
               "column " + column_.key + " must hold i32 token ids");
  return column_.as<std::int32_t>().subspan(
    offsets_[row], static_cast<std::size_t>(length(row)));
}

void ColumnReader::floats(std::size_t row, std::int64_t count,
                          float* to) const {
  const std::int64_t own = length(row);
  if (own == 1 && count > 1) { // one value per sample, repeated for each token
    floats(row, 1, to);
    std::fill_n(to + 1, count - 1, *to);
    return;
  }
  if (own != count && own != count + 1)
    throw ConfigError(Place{}, "key " + column_.key + " has "
                                 + std::to_string(own)
                                 + " values for a sequence of "
                                 + std::to_string(count) + " tokens");
  switch (column_.dtype) {
  case DType::f32:
    return row_reader_convert<float>(column_, offsets_[row], count, to);
  case DType::i32:
    return row_reader_convert<std::int32_t>(column_, offsets_[row], count, to);
  case DType::u8:
    return row_reader_convert<std::uint8_t>(column_, offsets_[row], count, to);
  default:
    TROUPE_CHECK(false, "column " + column_.key + " must be f32, i32 or u8");
  }
}

SampleIndex::SampleIndex(const net::Rows& rows) {
  rows_.reserve(rows.num_samples());
  for (std::size_t i = 0; i < rows.num_samples(); ++i)
    rows_.emplace(rows.samples[i], i);
}

std::size_t SampleIndex::row(SampleId sample) const {
  const auto found = rows_.find(sample);
  TROUPE_CHECK(found != rows_.end(), "no rows of sample " + to_string(sample));
  return found->second;
}

std::vector<std::size_t> micro_batch_ends(std::span<const std::int64_t> lengths,
                                          std::int64_t max_tokens,
                                          int min_parts) {
  const std::int64_t total
    = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  std::int64_t budget
    = max_tokens > 0 ? max_tokens : defaults::micro_batch_tokens;
  if (min_parts > 1)
    budget = std::min(budget, (total + min_parts - 1) / min_parts);
  std::vector<std::size_t> ends;
  std::int64_t used = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (used > 0 && used + lengths[i] > budget) {
      ends.push_back(i);
      used = 0;
    }
    used += lengths[i];
  }
  if (!lengths.empty())
    ends.push_back(lengths.size());
  return ends;
}

std::vector<std::vector<std::size_t>>
micro_batch_rows(std::span<const std::size_t> rows,
                 std::span<const std::int64_t> lengths, std::int64_t max_tokens,
                 int min_parts) {
  std::vector<std::vector<std::size_t>> parts;
  std::size_t first = 0;
  for (const std::size_t last :
       micro_batch_ends(lengths, max_tokens, min_parts)) {
    const auto own = lengths.subspan(first, last - first);
    if (std::accumulate(own.begin(), own.end(), std::int64_t{0}) > 0)
      parts.emplace_back(rows.begin() + static_cast<std::ptrdiff_t>(first),
                         rows.begin() + static_cast<std::ptrdiff_t>(last));
    first = last;
  }
  return parts;
}

std::vector<float> token_mask(const ColumnReaders& masks,
                              std::span<const std::size_t> rows,
                              std::span<const std::int64_t> cu_seqlens) {
  std::vector<float> mask(static_cast<std::size_t>(cu_seqlens.back()), 1.0F);
  for (std::size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    float* own = mask.data() + cu_seqlens[s];
    const std::int64_t length = cu_seqlens[s + 1] - cu_seqlens[s];
    if (!masks.empty())
      masks[s % masks.size()].floats(rows[s / masks.size()], length, own);
    for (std::int64_t t = 0; t < length; ++t)
      own[t] = t > 0 && own[t] != 0 ? 1.0F : 0.0F;
  }
  return mask;
}

std::vector<std::int64_t>
prompt_lengths(const ColumnReaders& masks, std::span<const std::size_t> rows,
               std::span<const std::span<const std::int32_t>> sequences) {
  std::vector<std::int64_t> lengths;
  std::vector<float> mask;
  for (std::size_t s = 0; !masks.empty() && s < sequences.size(); ++s) {
    mask.resize(sequences[s].size());
    masks[s % masks.size()].floats(rows[s / masks.size()],
                                   static_cast<std::int64_t>(mask.size()),
                                   mask.data());
    const auto own = std::ranges::find_if(mask, [](float m) { return m != 0; });
    lengths.push_back(own - mask.begin());
  }
  return lengths;
}

at::Tensor packed_column(const ColumnReaders& columns,
                         std::span<const std::size_t> rows,
                         std::span<const std::int64_t> cu_seqlens) {
  at::Tensor packed_T = at::empty({cu_seqlens.back()}, at::kFloat);
  float* data = packed_T.mutable_data_ptr<float>();
  for (std::size_t s = 0; s + 1 < cu_seqlens.size(); ++s)
    columns[s % columns.size()].floats(rows[s / columns.size()],
                                       cu_seqlens[s + 1] - cu_seqlens[s],
                                       data + cu_seqlens[s]);
  return packed_T;
}

std::int64_t per_token(const ColumnReader& column, const ColumnReader& ids,
                       std::span<const std::size_t> rows) {
  for (const std::size_t row : rows) {
    if (ids.length(row) == 0)
      continue;
    if (column.length(row) % ids.length(row) != 0)
      throw ConfigError(Place{}, "key " + column.key() + " has "
                                   + std::to_string(column.length(row))
                                   + " values for a sequence of "
                                   + std::to_string(ids.length(row))
                                   + " tokens");
    return column.length(row) / ids.length(row);
  }
  return 0;
}

at::Tensor packed_wide_column(const ColumnReader& column, std::int64_t width,
                              std::span<const std::size_t> rows,
                              std::span<const std::int64_t> cu_seqlens) {
  at::Tensor packed_TK = at::empty({cu_seqlens.back(), width}, at::kFloat);
  float* data = packed_TK.mutable_data_ptr<float>();
  for (std::size_t s = 0; s < rows.size(); ++s)
    column.floats(rows[s], (cu_seqlens[s + 1] - cu_seqlens[s]) * width,
                  data + cu_seqlens[s] * width);
  return packed_TK;
}

std::vector<std::int32_t> packed_wide_ids(const ColumnReader& column,
                                          std::span<const std::size_t> rows) {
  std::vector<std::int32_t> packed;
  for (const std::size_t row : rows) {
    const std::span<const std::int32_t> own = column.ids(row);
    packed.insert(packed.end(), own.begin(), own.end());
  }
  return packed;
}

void count_masked(std::span<const float> mask_T,
                  std::span<const std::int64_t> cu_seqlens, Denominators& to) {
  for (std::size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    double count = 0;
    for (auto t = cu_seqlens[s]; t < cu_seqlens[s + 1]; ++t)
      count += mask_T[static_cast<std::size_t>(t)];
    to.tokens += count;
    to.sequences += count > 0 ? 1 : 0;
  }
}

double masked_sum(const ColumnReaders& columns,
                  std::span<const std::size_t> rows,
                  std::span<const std::int64_t> cu_seqlens,
                  std::span<const float> mask_T) {
  const at::Tensor values_T = packed_column(columns, rows, cu_seqlens);
  const float* values = values_T.const_data_ptr<float>();
  double sum = 0;
  for (std::size_t t = 0; t < mask_T.size(); ++t)
    sum += double{mask_T[t]} * double{values[t]};
  return sum;
}

} // namespace troupe::models
