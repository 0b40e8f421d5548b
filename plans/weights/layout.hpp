// The part of each device of a replica: for every parameter the boxes (row
// range x column range of the global tensor) and their offsets in the device's
// flat buffer. The i-th device of the mesh has coordinate_of(strategy, i).
//
// - tp splits a parameter's `split_dim` into ceil-sized runs of whole heads
//   (`split_unit`); with fewer key-value heads than peers, neighbours hold the
//   same head. Parameters without a split are whole on every tensor peer.
// - ep deals the experts of a layer to tp ranks, and to neighbouring dp ranks
//   if there are more parts than tp ranks: runs of equal length, each expert
//   whole.
// - pp assigns the layers [0, L) to stages in contiguous runs by their cost
//   (stage_layers.hpp); the embedding is on the first stage, final norm and
//   head on the last. Without a separate head (tied) the embedding is on the
//   last stage too.
// - z3 (and z1 for the optimizer's planes) cuts each unit (embedding, layer,
//   final norm and head) over dp: a flat range of a box is at most three boxes.
//   Experts that ep deals to dp ranks are a unit of their own, cut over the dp
//   ranks that hold the same ones.
//
// Flat buffer: parameters in the given order, each starting at a multiple of
// 64 bytes; the boxes of one parameter follow each other without gaps,
// row-major inside a box.
#pragma once

#include "config/base/defaults.hpp"
#include "config/base/dtype.hpp"
#include "config/base/ids.hpp"
#include "config/base/strategy.hpp"
#include "config/model/model_shape.hpp"
#include "plans/weights/stage_layers.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::plans {

/// Alignment of the offsets of parameters in a flat buffer.
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

/// Planes that a layout covers: z1 cuts the optimizer's planes but not weights.
enum class LayoutKind : std::uint8_t { weights, optimizer };

struct Layout {
  DType dtype = DType::f32;
  std::vector<Shard> shards = {}; ///< in mesh order

  bool operator==(const Layout&) const = default;
  /// Returns the shard of `device`; throws InvariantError if it has none.
  const Shard& of(Rank device) const;
};

/// Lays out a replica; throws InvariantError unless `devices` has
/// strategy.num_devices() entries.
Layout make_layout(const StagedParameters& parameters, const Strategy& strategy,
                   std::span<const Rank> devices, DType dtype,
                   LayoutKind kind = LayoutKind::weights);

/// The leading boxes of a device that z cuts as one: a unit, or what lies in
/// one before, in or after experts that ep deals to dp ranks.
struct UnitRun {
  std::int32_t layer = 0; ///< as in ParameterShape
  bool is_dealt
    = false; ///< only every expert_group_dp()-th dp rank holds these
  std::size_t num_boxes = 0;
  std::int64_t num_elements = 0;
};
/// Returns how many dp ranks hold a unit, and which of these `dp` is.
constexpr std::uint32_t unit_holders(const Strategy& strategy, bool is_dealt) {
  return is_dealt ? strategy.dp / strategy.expert_group_dp() : strategy.dp;
}
constexpr std::uint32_t unit_holder(const Strategy& strategy, bool is_dealt,
                                    std::uint32_t dp) {
  return is_dealt ? dp / strategy.expert_group_dp() : dp;
}
/// Returns the first run of `boxes`, those of one coordinate before z cuts
/// them; there is at least one.
UnitRun unit_run(std::span<const ParameterShape> parameters,
                 std::span<const Box> boxes, const Strategy& strategy);

/// Returns the boxes that one coordinate owns before z cuts them, without
/// offsets.
std::vector<Box> whole_boxes(const StagedParameters& parameters,
                             const Strategy& strategy, const Coordinate& where);

/// Returns the same of each pipeline stage, for its first tensor coordinate.
std::vector<std::vector<Box>> first_boxes(const StagedParameters& parameters,
                                          const Strategy& strategy);

/// Returns the bytes of the largest shard of each pipeline stage: the size that
/// `make_layout` computes for its first tensor and data coordinate, without
/// laying out the others.
std::vector<std::uint64_t> largest_shards(const StagedParameters& parameters,
                                          const Strategy& strategy, DType dtype,
                                          LayoutKind kind);

} // namespace troupe::plans
