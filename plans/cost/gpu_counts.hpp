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
struct GpuStepCounts {
  GpuCounts decode_layer, decode_rest;
  GpuCounts score_layer, score_rest;
  GpuCounts train_layer, train_rest;
  /// The same layers with `num_counted_experts`, two per token: multiplied in
  /// groups, and one after the other.
  GpuCounts expert_decode, expert_score, expert_layer;
  GpuCounts single_decode, single_score, single_experts;
};

inline constexpr GpuStepCounts gpu_counts{
  .decode_layer = {10, 1.01, 0},
  .decode_rest = {4, 1.02, 0},
  .score_layer = {12, 1.05, 0},
  .score_rest = {6, 1.44, 1},
  .train_layer = {37, 1.26, 0},
  .train_rest = {18, 1.55, 1},
  .expert_decode = {17, 1.02, 0},
  .expert_score = {19, 1.06, 0},
  .expert_layer = {61, 1.76, 0},
  .single_decode = {49, 1.02, 1},
  .single_score = {51, 1.09, 1},
  .single_experts = {198, 1.72, 1},
};
inline constexpr std::int64_t num_counted_experts = 8;

/// A layer of a pass of prompts in generation: new ones of 128 tokens, and as
/// many tokens that follow 1,024 cached ones each; new ones with experts, as
/// above.
struct GpuPromptCounts {
  GpuCounts new_layer, continued_layer;
  GpuCounts expert_layer, single_experts;
};
inline constexpr GpuPromptCounts gpu_prompt_counts{
  .new_layer = {10, 0.98, 0},
  .continued_layer = {12, 1.25, 0},
  .expert_layer = {17, 1.03, 0},
  .single_experts = {49, 1.05, 1},
};

/// Launches of one more expert where they are multiplied one after the other.
struct LaunchesPerExpert {
  std::int64_t decode = 0, score = 0, train = 0;
};
inline constexpr LaunchesPerExpert launches_per_expert{
  .decode = 5, .score = 5, .train = 20};

} // namespace troupe::plans
