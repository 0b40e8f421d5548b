// Rows as the engine reads them: sequences by sample, micro-batches under a
// token budget, columns as packed tensors of the micro-batch.
#pragma once

#include "config/base/ids.hpp"
#include "models/losses/loss.hpp"
#include "models/transformer/transformer.hpp"
#include "net/base/rows.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::models {

/// One column with its offsets, read by row.
class ColumnReader {
public:
  explicit ColumnReader(const net::Column& column);
  std::int64_t length(std::size_t row) const {
    return static_cast<std::int64_t>(offsets_[row + 1] - offsets_[row]);
  }
  /// Returns the elements of an i32 column. Throws InvariantError for another
  /// type.
  std::span<const std::int32_t> ids(std::size_t row) const;
  const std::string& key() const {
    return column_.key;
  }
  /// Copies the first `count` elements of the row as floats. Throws
  /// InvariantError naming the key if the row has neither `count` nor count + 1
  /// elements.
  void floats(std::size_t row, std::int64_t count, float* to) const;

private:
  const net::Column& column_;
  std::vector<std::uint64_t> offsets_;
};

/// Row numbers of the samples.
class SampleIndex {
public:
  explicit SampleIndex(const net::Rows& rows);
  /// Returns the row of the sample. Throws InvariantError if there is none.
  std::size_t row(SampleId sample) const;

private:
  std::unordered_map<SampleId, std::size_t> rows_;
};

/// Cuts `lengths` (tokens of each item, in order) into runs of at most
/// `max_tokens` (0: the default), an item never split, and at least `min_parts`
/// runs if there are that many items. Returns the runs' ends.
std::vector<std::size_t> micro_batch_ends(std::span<const std::int64_t> lengths,
                                          std::int64_t max_tokens,
                                          int min_parts);

/// Returns the rows of each such run with any tokens, `lengths` being theirs.
std::vector<std::vector<std::size_t>>
micro_batch_rows(std::span<const std::size_t> rows,
                 std::span<const std::int64_t> lengths, std::int64_t max_tokens,
                 int min_parts);

/// Readers of packed sequences: one per row, or two for pairs, so that sequence
/// s is in row s / n and read by the s % n-th of n readers.
using ColumnReaders = std::vector<ColumnReader>;

/// Returns mask[T] of the packed sequences (without readers: all ones); the
/// first token of a sequence, which nothing predicts, is 0.
std::vector<float> token_mask(const ColumnReaders& masks,
                              std::span<const std::size_t> rows,
                              std::span<const std::int64_t> cu_seqlens);

/// Returns [N] the prompt length of each sequence: tokens before the first one
/// with mask 1. Empty without readers.
std::vector<std::int64_t>
prompt_lengths(const ColumnReaders& masks, std::span<const std::size_t> rows,
               std::span<const std::span<const std::int32_t>> sequences);

/// Returns a per-token column of these rows as one f32 tensor [T].
at::Tensor packed_column(const ColumnReaders& columns,
                         std::span<const std::size_t> rows,
                         std::span<const std::int64_t> cu_seqlens);

/// Returns how many numbers a column has per token of the first row that has
/// any. Throws ConfigError naming the key if that is no whole number.
std::int64_t per_token(const ColumnReader& column, const ColumnReader& ids,
                       std::span<const std::size_t> rows);

/// Returns a column with `width` numbers per token as one f32 tensor
/// [T, width].
at::Tensor packed_wide_column(const ColumnReader& column, std::int64_t width,
                              std::span<const std::size_t> rows,
                              std::span<const std::int64_t> cu_seqlens);
/// Returns a column of ids likewise, [T, width].
std::vector<std::int32_t> packed_wide_ids(const ColumnReader& column,
                                          std::span<const std::size_t> rows);

// Adds the tokens with mask 1, and the sequences that have any.
void count_masked(std::span<const float> mask_T,
                  std::span<const std::int64_t> cu_seqlens, Denominators& to);

// Returns a column's sum over the entries with mask 1.
double masked_sum(const ColumnReaders& columns,
                  std::span<const std::size_t> rows,
                  std::span<const std::int64_t> cu_seqlens,
                  std::span<const float> mask_T);

} // namespace troupe::models
