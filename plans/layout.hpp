// What each device of a replica owns: for every parameter the boxes (row range
// x column range of the global tensor) and their place in the device's flat
// buffer. The i-th device of the mesh has coordinate_of(strategy, i).
//
// - tp splits a parameter's `split_dim` into ceil-sized runs of whole heads
//   (`split_unit`); with fewer key-value heads than peers, neighbours hold the
//   same head. Parameters without a split are whole on every tensor peer.
// - pp deals the layers 0..L-1 to stages in contiguous runs by their cost
//   (stage_layers.hpp); the embedding is on the first stage, final norm and
//   head on the last. Without a head of its own (tied) the embedding is on the
//   last stage too.
// - z3 (and z1 for the optimizer's planes) cuts each unit (embedding, layer,
//   final norm and head) over dp: a flat range of a box is at most three boxes.
//
// Flat buffer: parameters in the given order, each starting at a multiple of
// 64 bytes; the boxes of one parameter follow each other without gaps, rows
// major inside a box.
#pragma once

#include "config/defaults.hpp"
#include "config/dtype.hpp"
#include "config/ids.hpp"
#include "config/model_shape.hpp"
#include "config/strategy.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

/// Offsets of parameters in a flat buffer are multiples of this.
inline constexpr std::uint64_t parameter_alignment_bytes
  = defaults::buffer_alignment_bytes;

struct Box {
  std::uint32_t parameter = 0; ///< index into the list of parameters
  std::int64_t row0 = 0, row1 = 0, col0 = 0, col1 = 0;
  std::uint64_t offset_bytes = 0; ///< in the device's flat buffer

  bool operator==(const Box&) const = default;
  std::int64_t num_elements() const {
    return (row1 - row0) * (col1 - col0);
  }
};

struct Shard {
  Rank device = {};
  Coordinate where = {};
  std::vector<Box> boxes = {};  ///< ascending by offset
  std::uint64_t size_bytes = 0; ///< of the flat buffer, a multiple of 64

  bool operator==(const Shard&) const = default;
};

/// What a parameter has beside its weight; all but it are the optimizer's.
enum class Plane : std::uint8_t { weight, optimizer };

struct Layout {
  DType dtype = DType::f32;
  std::vector<Shard> shards = {}; ///< in mesh order

  bool operator==(const Layout&) const = default;
  /// Throws InvariantError if the device is not part of it.
  const Shard& of(Rank device) const;
};

/// `devices` has strategy.num_devices() entries (InvariantError otherwise).
Layout make_layout(std::span<const ParameterShape> parameters,
                   const Strategy& strategy, std::span<const Rank> devices,
                   DType dtype, Plane plane = Plane::weight);

/// What one coordinate owns before z cuts it, without offsets.
std::vector<Box> whole_boxes(std::span<const ParameterShape> parameters,
                             const Strategy& strategy, const Coordinate& where);

/// Bytes of the largest shard of each pipeline stage: what `make_layout` gives
/// its first tensor and data coordinate, without laying out the others.
std::vector<std::uint64_t>
largest_shards(std::span<const ParameterShape> parameters,
               const Strategy& strategy, DType dtype, Plane plane);

} // namespace troupe::plans
