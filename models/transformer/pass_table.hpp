// The tokens of a generation pass and the names of its draws in the device's
// memory, where kernels read them when they run: one copy per pass, to an
// address that depends on the number of rows alone.
#pragma once

#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/backend.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::models {

class PassTable {
public:
  explicit PassTable(Backend& backend)
    : backend_(backend),
      block_(backend.memory()) {}

  /// Makes room for passes of so many rows; keeps the block if it is large
  /// enough.
  void reserve(std::int64_t rows);
  /// Replaces the content, after all kernels so far.
  void write(std::span<const DecodeToken> tokens,
             std::span<const DrawKey> keys);

  const DecodeToken* tokens() const;
  const DrawKey* keys() const;

private:
  Backend& backend_;
  AlignedFloats block_;            ///< keys, then tokens
  std::vector<std::byte> on_host_; ///< scratch
  std::size_t key_bytes_ = 0;
};

} // namespace troupe::models
