// Rows of samples: one packed column per key, with the samples' elements one
// after another, without padding. N samples, E elements in a column. Rows are
// values that share their memory; pass them on, never modify them.
#pragma once

#include "config/base/dtype.hpp"
#include "config/base/ids.hpp"
#include "net/base/buffer.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::net {

struct Column {
  std::string key;
  DType dtype = DType::f32;
  std::vector<std::uint32_t> lengths; ///< [N] number of elements of each sample
  Buffer data;                        ///< [E] packed in sample order

  /// Returns [N + 1] the first element of each sample; the last entry is E.
  std::vector<std::uint64_t> offsets() const;
  std::uint64_t num_elements() const;
  /// Returns the [E] elements. Throws InvariantError if T's size differs from
  /// dtype's.
  template <class T>
  std::span<T> as() const {
    check_element_size(sizeof(T));
    return data.as<T>();
  }

private:
  void check_element_size(std::size_t bytes) const;
};

/// Returns a column with uninitialized data for `lengths`.
Column make_column(std::string key, DType dtype,
                   std::vector<std::uint32_t> lengths);
/// Returns a column with a copy of `packed` (E elements of dtype's size).
Column make_column(std::string key, DType dtype,
                   std::vector<std::uint32_t> lengths, const void* packed);

struct Rows {
  std::vector<SampleId> samples; ///< [N] unique, in any order
  std::vector<Column> columns;   ///< unique keys

  Rows() = default;
  /// Throws InvariantError unless the rows pass `validate`.
  Rows(std::vector<SampleId> samples, std::vector<Column> columns);

  std::size_t num_samples() const noexcept {
    return samples.size();
  }
  /// Returns the column of a key. Throws InvariantError that names the key and
  /// the existing keys.
  const Column& at(std::string_view key) const;
  bool has(std::string_view key) const noexcept;
  std::uint64_t size_bytes() const noexcept;
  /// Adds a column. Throws InvariantError if it does not fit `samples`.
  void add(Column column);
};

/// Throws InvariantError for a repeated sample or key, or lengths that do not
/// match the number of samples or the bytes of the data.
void validate(const Rows& rows);

/// Returns these samples in this order, repacked (shared if nothing
/// changes). Throws InvariantError if a sample is missing.
Rows select(const Rows& rows, std::span<const SampleId> samples);
/// Returns only these keys, sharing the memory.
Rows select_keys(const Rows& rows, std::span<const std::string> keys);
/// Returns all samples of all parts in ascending order of sample ids; every
/// part must have the same keys with the same dtypes. Throws InvariantError
/// otherwise or for a repeated sample.
Rows concat(std::span<const Rows> parts);
/// Returns the columns of all parts side by side, in the sample order of the
/// first; all parts must have the same set of samples, and no key may repeat.
Rows merge(std::span<const Rows> parts);

} // namespace troupe::net
