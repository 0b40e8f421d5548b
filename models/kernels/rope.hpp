// Rotary position embedding in the half-split form of LLaMA and Qwen2: elements
// i and i + F of a head are rotated by position * frequency i; those from 2F on
// stay as they are.
//
// Shapes: P positions, D head dim, F frequencies (D/2 or fewer), T packed
// tokens.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/kernels/aligned_floats.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::models {

class DeviceAccess;

/// cos and sin of every position and frequency, times the factor of queries and
/// keys.
class RopeTable {
public:
  RopeTable(std::vector<float> frequencies, float attention_factor,
            DeviceAccess& device);
  /// Adds rows so that there are `positions` of them or more.
  void grow(std::int64_t positions);

  std::int64_t positions() const {
    return positions_;
  }
  std::int64_t num_frequencies() const { ///< F
    return static_cast<std::int64_t>(frequencies_.size());
  }
  const float* cos(std::int64_t position) const { ///< [F]
    return cos_PF_.data() + position * num_frequencies();
  }
  const float* sin(std::int64_t position) const { ///< [F]
    return sin_PF_.data() + position * num_frequencies();
  }

private:
  DeviceAccess* device_; ///< owner of the table's memory
  std::vector<float> frequencies_;
  float attention_factor_;
  std::int64_t positions_ = 0;
  AlignedFloats cos_PF_;
  AlignedFloats sin_PF_;
};

/// The tables of a model's layers: one, or two if layers with a window rotate
/// in their own way.
class RopeTables {
public:
  /// Allocates in the host's memory.
  explicit RopeTables(const ModelShape& shape);
  RopeTables(const ModelShape& shape, DeviceAccess& device);
  /// Adds rows so that there are `positions` of them or more.
  void grow(std::int64_t positions);
  /// Returns the table of a layer; null if it rotates nothing.
  const RopeTable* of(LayerRope layer) const;

private:
  RopeTable global_;
  std::optional<RopeTable> local_;
};

/// Position of the heads in a row-major buffer of tokens.
struct RopeShape {
  std::int64_t rows = 0;     ///< T
  std::int64_t stride = 0;   ///< floats between tokens
  std::int64_t heads = 0;    ///< adjacent, from the pointer on
  std::int64_t head_dim = 0; ///< D
};

/// Rotates every head of row t by `positions_T[t]`, in place; `backwards`
/// rotates the other way, with the same factor, which is the gradient.
void rope(const RopeShape& shape, const RopeTable& table,
          const std::int32_t* positions_T, float* x, bool backwards = false);

} // namespace troupe::models
