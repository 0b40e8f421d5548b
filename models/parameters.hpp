// A shard's memory: one flat fp32 buffer a plane (weight, gradient, and the two
// moments of AdamW), and views into it by parameter. The moments' planes may
// hold less, in an order of their own (z1). Parameters stand in the
// order of config's `parameters()`, each at an offset that is a multiple of 64
// bytes, as `plans::Layout` prescribes, so that a move is a plain copy and an
// all-reduce of the gradients is one call. Padding stays zero in every plane.
#pragma once

#include "config/model_shape.hpp"
#include "models/aligned_floats.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::models {

/// What a flat buffer holds. `grad`, `m` and `v` exist for trained roles only.
enum class Plane : std::uint8_t { weight, grad, m, v };
inline constexpr std::size_t num_planes = 4;

/// Flat buffers of one model. Not thread-safe; views stay valid until it dies.
class Parameters {
public:
  /// All planes zero. `trainable` also allocates grad, m and v.
  Parameters(std::vector<ParameterShape> shapes, bool trainable);
  /// Moments of `moment_size` elements.
  Parameters(std::vector<ParameterShape> shapes, bool trainable,
             std::int64_t moment_size);
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  const std::vector<ParameterShape>& shapes() const {
    return shapes_;
  }
  bool trainable() const {
    return trainable_;
  }
  /// Elements of a plane, padding included (a multiple of 16).
  std::int64_t size() const {
    return size_;
  }
  /// First element of parameter `index` in the weight and gradient planes.
  std::int64_t offset(std::size_t index) const {
    return offsets_[index];
  }
  /// Index of a parameter by its HF name, or -1.
  std::int64_t find(std::string_view name) const;
  /// View [rows, cols], or [rows] for vectors.
  at::Tensor view(std::size_t index, Plane plane) const;
  /// View of `count` neighbours from `index` on as one [sum of rows, cols]
  /// matrix (or [sum of rows] for vectors), or undefined where padding or other
  /// parameters stand between them or their columns differ.
  at::Tensor fused_view(std::size_t index, std::size_t count,
                        Plane plane) const;
  /// The whole plane, `size()` elements (moments may have fewer), 64-byte
  /// aligned.
  std::span<float> plane(Plane plane) const;

private:
  float* start(Plane plane) const;
  std::int64_t size_of(Plane plane) const {
    return plane == Plane::m || plane == Plane::v ? moment_size_ : size_;
  }

  std::vector<ParameterShape> shapes_;
  std::vector<std::int64_t> offsets_;
  std::int64_t size_ = 0;
  std::int64_t moment_size_ = 0;
  bool trainable_ = false;
  AlignedFloats planes_[num_planes];
};

} // namespace troupe::models
