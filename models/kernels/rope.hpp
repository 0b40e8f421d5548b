// Rotary position embedding in the half-split form of LLaMA and Qwen2: elements
// i and i + D/2 of a head are rotated by position * frequency i.
//
// Shapes: P positions, D head dim, T packed tokens.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/kernels/aligned_floats.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models {

class Backend;

/// cos and sin of every position and frequency, with the model's rope scaling
/// (none, linear, llama3).
class RopeTable {
public:
  /// Allocates in the host's memory.
  explicit RopeTable(const ModelShape& shape);
  RopeTable(const ModelShape& shape, Backend& backend);
  /// Adds rows so that there are `positions` of them or more.
  void grow(std::int64_t positions);

  std::int64_t positions() const {
    return positions_;
  }
  std::int64_t num_frequencies() const { ///< D/2
    return static_cast<std::int64_t>(frequencies_.size());
  }
  const float* cos(std::int64_t position) const { ///< [D/2]
    return cos_PF_.data() + position * num_frequencies();
  }
  const float* sin(std::int64_t position) const { ///< [D/2]
    return sin_PF_.data() + position * num_frequencies();
  }

private:
  Backend* backend_; ///< owner of the table's memory
  std::vector<float> frequencies_;
  std::int64_t positions_ = 0;
  AlignedFloats cos_PF_;
  AlignedFloats sin_PF_;
};

/// Position of the heads in a row-major buffer of tokens.
struct RopeShape {
  std::int64_t rows = 0;     ///< T
  std::int64_t stride = 0;   ///< floats between tokens
  std::int64_t heads = 0;    ///< adjacent, from the pointer on
  std::int64_t head_dim = 0; ///< D
};

/// Rotates every head of row t by `positions_T[t]`, in place; `backwards`
/// rotates the other way, which is also the gradient.
void rope(const RopeShape& shape, const RopeTable& table,
          const std::int32_t* positions_T, float* x, bool backwards = false);

} // namespace troupe::models
