// The unit in the middle of an MLP: act(gate) * up, or act(up) without a gate,
// and its gradient, with the contract of models/kernels/mlp.hpp. `Unit` is one
// of models/kernels/activations.hpp.
//
// T rows, I intermediate; gate and up are adjacent, [T, 2I]. One block per row
// and tile of columns.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"
#include "models/kernels/activations.hpp"

#include <cstdint>

namespace troupe::models::gpu {

/// The part of a row that a block computes.
struct UnitTile {
  static constexpr std::int64_t width = 1024;
  std::int64_t row;
  std::int64_t begin;
  std::int64_t end;
};

TROUPE_KERNEL UnitTile unit_tile(std::int64_t block, std::int64_t columns) {
  const std::int64_t tiles = pieces_of(columns, UnitTile::width);
  const std::int64_t begin = block % tiles * UnitTile::width;
  const std::int64_t end = begin + UnitTile::width;
  return {block / tiles, begin, end < columns ? end : columns};
}

template <class Unit, class T>
struct GatedUnit {
  static constexpr int threads = 256;
  struct Shared {};

  const T* in = nullptr; ///< [T, 2I], or [T, I] without a gate
  T* act_TI = nullptr;
  std::int64_t width = 0; ///< I
  bool gated = true;

  static std::int64_t blocks(std::int64_t rows, std::int64_t width) {
    return rows * pieces_of(width, UnitTile::width);
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared&) const {
    const UnitTile tile = unit_tile(block.index, width);
    const T* row = in + tile.row * (gated ? 2 * width : width);
    T* act = act_TI + tile.row * width;
    block.each([&](int lane) {
      for (std::int64_t i = tile.begin + lane; i < tile.end; i += threads) {
        const float value = Unit::value(to_float(row[i]));
        store(act + i, gated ? value * to_float(row[width + i]) : value);
      }
    });
  }
};

template <class Unit, class T>
struct GatedUnitBackward {
  static constexpr int threads = 256;
  struct Shared {};

  T* in = nullptr;        ///< becomes its gradient
  T* d_act_TI = nullptr;  ///< becomes act, which the next gradient needs
  std::int64_t width = 0; ///< I
  bool gated = true;

  static std::int64_t blocks(std::int64_t rows, std::int64_t width) {
    return GatedUnit<Unit, T>::blocks(rows, width);
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared&) const {
    const UnitTile tile = unit_tile(block.index, width);
    T* row = in + tile.row * (gated ? 2 * width : width);
    T* act = d_act_TI + tile.row * width;
    block.each([&](int lane) {
      for (std::int64_t i = tile.begin + lane; i < tile.end; i += threads) {
        const UnitValue unit = Unit::both(to_float(row[i]));
        const float d = to_float(act[i]);
        const float up = gated ? to_float(row[width + i]) : 1.0F;
        store(row + i, d * up * unit.slope);
        if (gated)
          store(row + width + i, d * unit.value);
        store(act + i, unit.value * up);
      }
    });
  }
};

} // namespace troupe::models::gpu
