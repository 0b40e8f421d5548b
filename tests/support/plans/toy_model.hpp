// A model that is only shapes, for tests of layouts and moves: sizes that no
// degree divides, matrices split by rows and by columns, heads that tp ranks
// share if there are fewer of them, norms.
#pragma once

#include "config/model/model_shape.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Returns the embedding, three matrices and a norm per layer, the final norm,
/// and the head unless tied. `split_dim` and units as in ParameterShape; "kv"
/// has two heads.
inline std::vector<ParameterShape> toy_model(std::int32_t layers,
                                             std::int64_t width, bool tied) {
  std::vector<ParameterShape> all;
  const auto add = [&](std::string name, std::int64_t rows, std::int64_t cols,
                       std::int32_t layer, std::int8_t split) {
    all.push_back({.name = std::move(name),
                   .rows = rows,
                   .cols = cols,
                   .vector = cols == 1,
                   .layer = layer,
                   .split_dim = split,
                   .decay = cols > 1,
                   .stored = {}});
  };
  add("embed", 3 * width + 1, width, -1, 0);
  for (std::int32_t i = 0; i < layers; ++i) {
    add("up" + std::to_string(i), 2 * width, width, i, 0);
    add("down" + std::to_string(i), width, 2 * width, i, 1);
    add("kv" + std::to_string(i), 2 * width, width, i, 0);
    all.back().split_unit = width;
    add("norm" + std::to_string(i), width, 1, i, -1);
  }
  add("final_norm", width, 1, layers, -1);
  if (!tied)
    add("head", 3 * width + 1, width, layers, 0);
  return all;
}

} // namespace troupe::testing
