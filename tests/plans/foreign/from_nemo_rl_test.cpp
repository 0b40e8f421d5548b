// Recipes of NeMo-RL by their facts: examples/configs/recipes/llm of
// NVIDIA-NeMo/RL (grpo-llama3.1-8b-instruct-2n8g-fsdp2tp1-noncolocated,
// grpo-qwen2.5-7b-instruct-4n8g-megatron, grpo-qwen2.5-32b-32n8g-fsdp2tp8).
#include "config/settings/settings.hpp"

#include "tests/support/plans/recipes.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::plans;
using support::recipe_of_yaml;
using support::settings_of;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

namespace {

const std::string split_8b = R"yaml(
grpo: {num_prompts_per_step: 64, num_generations_per_prompt: 32}
loss_fn: {reference_policy_kl_penalty: 0.01}
policy:
  model_name: meta-llama/Llama-3.1-8B-Instruct
  train_global_batch_size: 512
  train_micro_batch_size: 1
  max_total_sequence_length: 4096
  dtensor_cfg: {enabled: true, cpu_offload: false, tensor_parallel_size: 1}
  dynamic_batching:
    train_mb_tokens: ${mul:${policy.max_total_sequence_length}, ${policy.train_micro_batch_size}}
  generation:
    backend: vllm
    max_new_tokens: 4096
    vllm_cfg: {tensor_parallel_size: 1, gpu_memory_utilization: 0.6}
    colocated:
      enabled: false
      resources: {gpus_per_node: null, num_nodes: 1}
data: {max_input_seq_length: 4096}
cluster: {gpus_per_node: 8, num_nodes: 2}
)yaml";

const std::string megatron_7b = R"yaml(
grpo: {num_prompts_per_step: 64, num_generations_per_prompt: 32}
policy:
  model_name: Qwen/Qwen2.5-7B-Instruct
  train_global_batch_size: 512
  train_micro_batch_size: 1
  max_total_sequence_length: 4096
  dtensor_cfg: {enabled: false}
  megatron_cfg:
    enabled: true
    tensor_model_parallel_size: 2
    pipeline_model_parallel_size: 1
  generation:
    max_new_tokens: ${policy.max_total_sequence_length}
    vllm_cfg: {tensor_parallel_size: 4, gpu_memory_utilization: 0.6}
    colocated: {enabled: true}
cluster: {gpus_per_node: 8, num_nodes: 4}
)yaml";

const std::string tensor_32b = R"yaml(
grpo: {num_prompts_per_step: 64, num_generations_per_prompt: 32, max_num_steps: 2}
policy:
  model_name: Qwen/Qwen2.5-32B
  train_micro_batch_size: 1
  max_total_sequence_length: 16384
  automodel_cfg: {activation_checkpointing: true, tensor_parallel_size: 8}
  generation:
    max_new_tokens: 16384
    vllm_cfg: {tensor_parallel_size: 4, max_model_len: 16384}
cluster: {gpus_per_node: 8, num_nodes: 32}
)yaml";

} // namespace

TEST(FromNemoRl, GenerationThatIsNotColocatedHasANodeOfItsOwn) {
  const auto recipe = recipe_of_yaml(split_8b);
  EXPECT_EQ(recipe.system, System::nemo_rl);
  EXPECT_EQ(print(recipe.layout),
            "generation 0-7 d8, actor 8-15 d8z3, ref 8-15 d8z3 weights "
            "offloaded");
  const auto settings = settings_of(recipe);
  EXPECT_EQ(settings.rollout.n, 32);
  EXPECT_EQ(settings.algorithm.mini_batches, 4);
  // one limit for prompt and response together
  EXPECT_EQ(settings.data.max_prompt_tokens + settings.rollout.max_new_tokens,
            4096);
  EXPECT_EQ(recipe.layout.actor.micro_batch_tokens, 4096);
}

TEST(FromNemoRl, MegatronAndTheEngineShareTheirDevices) {
  const auto recipe = recipe_of_yaml(megatron_7b);
  EXPECT_TRUE(recipe.layout.is_colocated());
  EXPECT_EQ(to_string(recipe.layout.generation.strategy), "d8t4");
  EXPECT_EQ(to_string(recipe.layout.actor.strategy), "d16t2z1");
}

TEST(FromNemoRl, WhatARecipeLeavesToItsBaseFileIsListedAsAssumed) {
  const auto recipe = recipe_of_yaml(tensor_32b);
  EXPECT_EQ(to_string(recipe.layout.actor.strategy), "d32t8z3");
  EXPECT_EQ(settings_of(recipe).algorithm.recompute, "true");
  EXPECT_THAT(
    recipe.assumed,
    Contains(Field(&AssumedValue::key, "policy.train_global_batch_size")));
}

TEST(FromNemoRl, AnOverrideAfterTheFileWins) {
  const auto recipe = recipe_of_yaml(
    megatron_7b, "policy.megatron_cfg.tensor_model_parallel_size=4 "
                 "cluster.num_nodes=1");
  EXPECT_EQ(to_string(recipe.layout.actor.strategy), "d2t4z1");
}

TEST(FromNemoRl, ALagBeyondThatOfPlansIsCutWithANote) {
  const auto recipe
    = recipe_of_yaml(split_8b, "grpo.async_grpo.enabled=true "
                               "grpo.async_grpo.max_trajectory_age_steps=20");
  EXPECT_EQ(recipe.layout.lag, 8u);
  EXPECT_THAT(recipe.notes,
              Contains(Field(&ForeignNote::text, HasSubstr("lags 20 steps"))));
}

TEST(FromNemoRl, EveryValueIsAccountedFor) {
  for (const auto& yaml : {split_8b, megatron_7b, tensor_32b})
    for (const auto& value : recipe_of_yaml(yaml).values)
      EXPECT_NE(value.fate, Fate::unknown) << value.value.key;
}
