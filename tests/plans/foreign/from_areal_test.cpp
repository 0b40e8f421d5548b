// Recipes of AReaL by their facts: examples/math of inclusionAI/AReaL
// (boba_grpo.yaml, gsm8k_grpo.yaml, gsm8k_grpo_colocated.yaml).
#include "config/settings/settings.hpp"
#include "plans/foreign/allocation_mode.hpp"

#include "tests/support/plans/recipes.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::plans;
using support::recipe_of_yaml;
using support::settings_of;

namespace {

/// Returns a recipe's text; three published files differ in these.
std::string areal_recipe(const std::string& allocation,
                         const std::string& model, int prompts, int answers,
                         int tokens, int ahead) {
  return "experiment_name: e\ncluster: {n_nodes: 1, n_gpus_per_node: 8}\n"
         "allocation_mode: "
         + allocation
         + "\nrollout: {max_head_offpolicyness: " + std::to_string(ahead)
         + ", consumer_batch_size: '${train_dataset.batch_size}'}\n"
           "gconfig: {n_samples: "
         + std::to_string(answers)
         + ", max_new_tokens: " + std::to_string(tokens)
         + ", temperature: 1.0}\nactor:\n  path: " + model
         + "\n  gradient_checkpointing: true\n  mb_spec: {max_tokens_per_mb: "
           "10240}\n  kl_ctl: 0.0\n  ppo_n_minibatches: 4\n"
           "  recompute_logprob: true\n  optimizer: {lr: 1.7e-5}\n"
           "ref: {path: '${actor.path}'}\n"
           "sglang: {mem_fraction_static: 0.8}\n"
           "vllm: {gpu_memory_utilization: 0.9}\n"
           "train_dataset: {batch_size: "
         + std::to_string(prompts) + ", max_length: 1024}\n";
}

const std::string boba = areal_recipe(
  "vllm:d4+d4", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 32, 16, 8192, 4);
const std::string gsm8k = areal_recipe(
  "sglang:d4p1t1+d4p1t1", "Qwen/Qwen2.5-1.5B-Instruct", 256, 4, 1024, 2);
const std::string colocated
  = areal_recipe("'sglang[rollout]:d8p1t1|fsdp[actor]:d8p1t1'",
                 "Qwen/Qwen2.5-1.5B", 256, 4, 1024, 0);

} // namespace

TEST(FromAreal, EnginesAndTrainersAreApartAndGenerationIsAhead) {
  const auto recipe = recipe_of_yaml(boba);
  EXPECT_EQ(recipe.system, System::areal);
  EXPECT_EQ(print(recipe.layout), "generation 0-3 d4, actor 4-7 d4z3, lag 4");
  EXPECT_EQ(recipe.layout.engine_share, 0.9); // that of vLLM
  const auto settings = settings_of(recipe);
  EXPECT_EQ(settings.workflow, "grpo");
  EXPECT_EQ(settings.rollout.n, 16);
  EXPECT_EQ(settings.algorithm.mini_batches, 4);
  EXPECT_EQ(settings.algorithm.kl_in, "none");
  EXPECT_EQ(settings.algorithm.old_logprobs, "recompute");
}

TEST(FromAreal, TheEngineThatIsNamedHasItsShare) {
  const auto recipe = recipe_of_yaml(gsm8k);
  EXPECT_EQ(recipe.layout.engine_share, 0.8);
  EXPECT_EQ(recipe.layout.lag, 2u);
  EXPECT_EQ(settings_of(recipe).data.batch_size, 256);
}

TEST(FromAreal, ColocatedModelsTakeTurns) {
  const auto recipe = recipe_of_yaml(colocated);
  EXPECT_TRUE(recipe.layout.is_colocated());
  EXPECT_EQ(recipe.layout.lag, 0u);
  EXPECT_EQ(to_string(recipe.layout.actor.strategy), "d8z3");
}

TEST(FromAreal, EveryValueIsAccountedFor) {
  for (const auto& yaml : {boba, gsm8k, colocated})
    for (const auto& value : recipe_of_yaml(yaml).values)
      EXPECT_NE(value.fate, Fate::unknown) << value.value.key;
}

TEST(AllocationMode, HasBackendAndDegreesOfBothSides) {
  const auto found = parse_allocation("sglang.d4t2p1+megatron:d2p2t2c2", {});
  EXPECT_EQ(found.generation.backend, "sglang");
  EXPECT_EQ(found.generation.tp, 2u);
  EXPECT_EQ(found.generation.num_devices(), 8u);
  EXPECT_EQ(found.training.backend, "megatron");
  EXPECT_EQ(found.training.pp, 2u);
  EXPECT_EQ(found.training.others, 2u);
  EXPECT_FALSE(found.colocated);
}

TEST(AllocationMode, AnythingElseIsRefused) {
  for (const char* text :
       {"", "d4", "vllm:d4+", "vllm:x4+d4", "vllm:d+d4", "vllm:d0+d4", "+",
        "d4+d99999999999", "d4+d4294967297", "d65536t65536+d4"})
    EXPECT_THROW(parse_allocation(text, {}), ConfigError) << text;
}
