// The model shape that most tests of models use.
#pragma once

#include "config/model/model_shape.hpp"

namespace troupe::testing {

/// Returns a small LLaMA: grouped heads, untied, sizes that are no multiples of
/// a vector's.
inline ModelShape small_shape() {
  ModelShape shape;
  shape.family = "llama";
  shape.vocab_size = 75;
  shape.hidden_size = 40;
  shape.num_layers = 2;
  shape.num_heads = 4;
  shape.num_kv_heads = 2;
  shape.head_dim = 10;
  shape.intermediate_size = 52;
  shape.max_positions = 128;
  shape.norm_eps = 1e-5;
  return shape;
}

} // namespace troupe::testing
