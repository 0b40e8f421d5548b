// Planning problems in one line: PPO with models of a size on a cluster.
#pragma once

#include "plans/cost/plan_problem.hpp"

#include "tests/support/plans/support.hpp"

namespace troupe::plans {

inline ModelShape llama_shape(std::int64_t layers, std::int64_t hidden,
                              std::int64_t inner, std::int64_t heads,
                              std::int64_t kv_heads) {
  return {.family = "llama",
          .vocab_size = 32000,
          .hidden_size = hidden,
          .num_layers = layers,
          .num_heads = heads,
          .num_kv_heads = kv_heads,
          .head_dim = hidden / heads,
          .intermediate_size = inner,
          .max_positions = 4096,
          .rope = {},
          .windowed_layers = {},
          .eos = {}};
}
inline ModelShape shape_7b() {
  return llama_shape(32, 4096, 11008, 32, 32);
}
inline ModelShape shape_34b() {
  return llama_shape(48, 8192, 22016, 64, 8);
}
inline ModelShape shape_70b() {
  return llama_shape(80, 8192, 28672, 64, 8);
}
/// Returns Mixtral 8x7B: 8 experts, 2 per token.
inline ModelShape shape_mixtral() {
  auto shape = llama_shape(32, 4096, 14336, 32, 8);
  shape.experts.count = 8;
  shape.experts.per_token = 2;
  shape.experts.width = shape.intermediate_size;
  return shape;
}
inline ModelShape shape_tiny() {
  return llama_shape(4, 128, 256, 8, 4);
}

/// Returns PPO with four models of one shape, ReaL's first workload: 512
/// samples of 128 and 128 tokens, 4 mini-batches, recomputation, 16 bits.
inline PlanProblem make_problem(const ModelShape& shape, std::uint32_t nodes,
                                std::uint32_t devices_per_node,
                                const std::string& hardware = "a100x8") {
  PlanProblem problem;
  problem.workflow = make_ppo();
  problem.cluster = {.nodes = nodes, .devices_per_node = devices_per_node};
  for (const auto& role : problem.workflow.roles) {
    problem.shapes[role.name] = shape;
    problem.shapes[role.name].scalar_head = role.scalar_head;
    problem.dtypes[role.name] = DType::bf16;
  }
  problem.sizes = {.samples_per_step = 512,
                   .mini_batches = 4,
                   .max_sequence_tokens = 256,
                   .micro_batch_tokens = 1 << 16,
                   .recompute_activations = true,
                   .engine = {.storage = StorageRule::published}};
  problem.lengths = Lengths(128, 128, 128);
  problem.hardware = load_hardware(hardware);
  return problem;
}

} // namespace troupe::plans
