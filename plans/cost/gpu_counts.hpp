// Counts of what a GPU is given for a layer of a step, and for the rest:
// launches, bytes as a multiple of the least (layer_traffic.hpp), and copies
// that stop the host. The cost model predicts from these counts, and
// tests/models/gpu/aten_counts_test.cpp holds the code to them: who lowers a
// count lowers it here, none may rise.
#pragma once

#include <cstdint>

namespace troupe::plans {

struct GpuCounts {
  std::int64_t launches = 0;
  double traffic = 0;
  std::int64_t blocking_copies = 0;
};

/// A layer of decoding, of a pass without gradients, and of a micro-batch of
/// training, both ways; and what is once per pass: embedding, norm, head, loss.
/// A layer of prompts in generation: new ones of 128 tokens, and as many tokens
/// that follow 1,024 cached ones each.
struct GpuStepCounts {
  GpuCounts decode_layer, decode_rest;
  GpuCounts prompt_layer, continued_layer;
  GpuCounts score_layer, score_rest;
  GpuCounts train_layer, train_rest;
  /// A micro-batch's layer with eight experts, two per token: multiplied in
  /// groups, and one after the other.
  GpuCounts expert_layer, single_experts;
};

inline constexpr GpuStepCounts gpu_counts{
  .decode_layer = {10, 1.01, 0},
  .decode_rest = {4, 1.02, 1},
  .prompt_layer = {10, 1.05, 0},
  .continued_layer = {12, 2.50, 0},
  .score_layer = {12, 1.05, 0},
  .score_rest = {6, 1.44, 1},
  .train_layer = {37, 1.26, 0},
  .train_rest = {18, 1.55, 1},
  .expert_layer = {68, 2.63, 1},
  .single_experts = {198, 2.24, 1},
};

/// Launches of one more expert of a layer: its rows are gathered, two products,
/// the unit between them, its outputs added to their tokens. Not counted by the
/// test.
inline constexpr std::int64_t expert_launches = 5;
/// Copies of a layer with experts that stop the host, which reads the router's
/// scores.
inline constexpr std::int64_t expert_blocking_copies = 1;

} // namespace troupe::plans
