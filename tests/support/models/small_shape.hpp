// The model shapes that most tests of models use.
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

/// Returns a shape for strategies of up to four devices. Two key-value heads:
/// t4 holds each of them twice. 75 ids: t2 and t4 do not divide the vocabulary,
/// nor t4 the 42 MLP columns.
inline ModelShape wide_shape() {
  ModelShape shape = small_shape();
  shape.num_layers = 4;
  shape.head_dim = 8;
  shape.hidden_size = 32;
  shape.intermediate_size = 42;
  return shape;
}

/// Returns a small Qwen3-MoE whose experts a device of ours that stores bf16
/// dispatches by itself: their sizes are multiples of 8.
inline ModelShape experts_shape() {
  ModelShape shape = small_shape();
  shape.family = "qwen3_moe";
  shape.head_dim = 16;
  shape.qk_norm = QkNormScope::head;
  shape.experts = {.count = 8, .per_token = 2, .width = 16};
  return shape;
}

} // namespace troupe::testing
