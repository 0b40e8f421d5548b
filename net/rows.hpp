// Rows of samples: for each key one packed column, the samples' elements one
// after the other, no padding. N samples, E elements in a column.
// Rows are values that share their memory; hand them over, never change them.
#pragma once

#include "config/dtype.hpp"
#include "config/ids.hpp"
#include "net/buffer.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::net {

struct Column {
  std::string key;
  DType dtype = DType::f32;
  std::vector<std::uint32_t> lengths; ///< [N] elements of each sample
  Buffer data;                        ///< [E] packed in sample order

  /// [N + 1] first element of each sample; the last entry is E.
  std::vector<std::uint64_t> offsets() const;
  std::uint64_t num_elements() const;
  /// [E] elements. Throws InvariantError when T has another size than dtype.
  template <class T>
  std::span<T> as() const {
    check_element_size(sizeof(T));
    return data.as<T>();
  }

private:
  void check_element_size(std::size_t bytes) const;
};

/// A column with uninitialised data for `lengths`.
Column make_column(std::string key, DType dtype,
                   std::vector<std::uint32_t> lengths);
/// A column with a copy of `packed` (E elements of dtype's size).
Column make_column(std::string key, DType dtype,
                   std::vector<std::uint32_t> lengths, const void* packed);

struct Rows {
  std::vector<SampleId> samples; ///< [N] each once, in any order
  std::vector<Column> columns;   ///< each key once

  Rows() = default;
  /// Throws InvariantError unless `validate` would pass.
  Rows(std::vector<SampleId> samples, std::vector<Column> columns);

  std::size_t num_samples() const noexcept {
    return samples.size();
  }
  /// Throws InvariantError that names the key and the keys there are.
  const Column& at(std::string_view key) const;
  bool has(std::string_view key) const noexcept;
  std::uint64_t size_bytes() const noexcept;
  /// Adds a column; throws InvariantError when it does not fit `samples`.
  void add(Column column);
};

/// Throws InvariantError: a sample or key twice, lengths that do not fit the
/// number of samples or the bytes of the data.
void validate(const Rows& rows);

/// These samples in this order, packed anew (shared when nothing changes).
/// Throws InvariantError when a sample is not there.
Rows select(const Rows& rows, std::span<const SampleId> samples);
/// These keys only, sharing the memory.
Rows select_keys(const Rows& rows, std::span<const std::string> keys);
/// All samples of all parts by rising sample id; every part has the same keys
/// with the same dtypes. Throws InvariantError otherwise or on a double sample.
Rows concat(std::span<const Rows> parts);
/// Columns of all parts beside each other, in the sample order of the first;
/// every part has the same set of samples and no key comes twice.
Rows merge(std::span<const Rows> parts);

} // namespace troupe::net
