// Recipes of OpenRLHF by their facts: examples/scripts of OpenRLHF/OpenRLHF
// (train_ppo_llama_ray_70b.sh, train_ppo_ray_hybrid_engine.sh,
// train_dapo_ray_hybrid_engine.sh,
// train_reinforce_baseline_ray_agent_async.sh).
#include "config/settings/settings.hpp"

#include "tests/support/plans/recipes.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::plans;
using support::recipe_of_script;
using support::settings_of;

namespace {

const std::string ppo_70b = R"sh(
ray job submit --address="http://127.0.0.1:8265" --no-wait \
  -- python3 examples/train_ppo_ray.py \
  --ref_num_nodes 1 --ref_num_gpus_per_node 2 \
  --reward_num_nodes 1 --reward_num_gpus_per_node 2 \
  --critic_num_nodes 1 --critic_num_gpus_per_node 4 \
  --actor_num_nodes 1 --actor_num_gpus_per_node 4 \
  --vllm_num_engines 2 --vllm_tensor_parallel_size 2 \
  --pretrain meta-llama/Llama-2-70b-chat-hf \
  --reward_pretrain meta-llama/Llama-2-70b-chat-hf \
  --micro_train_batch_size 1 --train_batch_size 128 \
  --micro_rollout_batch_size 2 --rollout_batch_size 1024 \
  --max_epochs 1 --prompt_max_len 1024 --generate_max_len 1024 \
  --zero_stage 3 --bf16 --actor_learning_rate 5e-7 \
  --critic_learning_rate 9e-6 --init_kl_coef 0.01 \
  --normalize_reward --adam_offload --flash_attn --gradient_checkpointing
)sh";

const std::string ppo_hybrid = R"sh(
python3 -m openrlhf.cli.train_ppo_ray \
  --ref_num_nodes 1 --ref_num_gpus_per_node 8 \
  --reward_num_nodes 1 --reward_num_gpus_per_node 8 \
  --critic_num_nodes 1 --critic_num_gpus_per_node 8 \
  --actor_num_nodes 1 --actor_num_gpus_per_node 8 \
  --vllm_num_engines 4 --vllm_tensor_parallel_size 2 \
  --colocate_all_models --vllm_gpu_memory_utilization 0.5 \
  --pretrain OpenRLHF/Llama-3-8b-sft-mixture \
  --reward_pretrain OpenRLHF/Llama-3-8b-rm-700k \
  --train_batch_size 128 --rollout_batch_size 1024 --n_samples_per_prompt 1 \
  --prompt_max_len 1024 --generate_max_len 1024 --zero_stage 3 \
  --param_dtype bf16 --init_kl_coef 0.01 --vllm_enable_sleep \
  --deepspeed_enable_sleep --use_dynamic_batch --train_max_tokens_per_gpu 16384
)sh";

const std::string dapo = R"sh(
python3 -m openrlhf.cli.train_ppo_ray \
  --ref_num_nodes 1 --ref_num_gpus_per_node 8 \
  --actor_num_nodes 1 --actor_num_gpus_per_node 8 \
  --vllm_num_engines 4 --vllm_tensor_parallel_size 2 --colocate_all_models \
  --vllm_gpu_memory_utilization 0.6 --init_kl_coef 1e-3 --use_kl_loss \
  --kl_estimator k3 --advantage_estimator group_norm --dynamic_filtering \
  --dynamic_filtering_reward_range 0 1 --eps_clip_low_high 0.2 0.27 \
  --pretrain OpenRLHF/Llama-3-8b-sft-mixture \
  --remote_rm_url /openrlhf/examples/python/reward_func.py \
  --micro_train_batch_size 8 --train_batch_size 128 \
  --micro_rollout_batch_size 16 --rollout_batch_size 128 \
  --n_samples_per_prompt 8 --prompt_max_len 1024 --generate_max_len 1024 \
  --zero_stage 3 --bf16 --vllm_enable_sleep --deepspeed_enable_sleep
)sh";

const std::string async_agent = R"sh(
MODEL_PATH="Qwen/Qwen3-4B-Thinking-2507"
ROLLOUT_ARGS=(
   --agent_func_path examples/python/agent_func.py
   --prompt_max_len 10240
   --generate_max_len 64000
   --rollout_batch_size 128
   # --max_samples 1
   --n_samples_per_prompt 8
   --train_batch_size 1024
)
ENGINE_ARGS=(
   --async_train
   --ref_num_nodes 1
   --ref_num_gpus_per_node 4
   --actor_num_nodes 1
   --actor_num_gpus_per_node 4
   --vllm_num_engines 2
   --vllm_tensor_parallel_size 2
   --ring_attn_size 2
)
ray job submit --address="http://127.0.0.1:8265" \
   -- python3 -m openrlhf.cli.train_ppo_ray --pretrain ${MODEL_PATH} \
   ${ROLLOUT_ARGS[@]} ${ENGINE_ARGS[@]} --colocate_actor_ref \
   --advantage_estimator reinforce_baseline --init_kl_coef 1e-5 --use_kl_loss
)sh";

} // namespace

TEST(FromOpenRlhf, EveryModelOf70bHasItsGroup) {
  const auto recipe = recipe_of_script(ppo_70b);
  EXPECT_EQ(recipe.system, System::openrlhf);
  EXPECT_EQ(print(recipe.layout),
            "generation 0-3 d2t2, actor 4-7 d4z3 optimizer offloaded, critic "
            "8-11 d4z3 optimizer offloaded, ref 12-13 d2z3, reward 14-15 d2z3");
  EXPECT_EQ(recipe.work.num_devices(), 16u);
  EXPECT_EQ(recipe.work.nodes, 2u);
  EXPECT_FALSE(recipe.layout.is_colocated());
  EXPECT_TRUE(recipe.layout.is_split());
  const auto settings = settings_of(recipe);
  EXPECT_EQ(settings.workflow, "ppo");
  EXPECT_EQ(settings.algorithm.mini_batches, 8);
  EXPECT_EQ(settings.algorithm.recompute, "true");
  EXPECT_THAT(print_account(recipe, /*all=*/false),
              ::testing::HasSubstr(host_optimizer_note));
}

TEST(FromOpenRlhf, TheHybridEngineHasAllModelsOnAllDevices) {
  const auto recipe = recipe_of_script(ppo_hybrid);
  const auto& layout = recipe.layout;
  EXPECT_TRUE(layout.is_colocated());
  EXPECT_EQ(recipe.work.num_devices(), 8u);
  EXPECT_EQ(to_string(layout.generation.strategy), "d4t2");
  EXPECT_EQ(to_string(layout.critic.strategy), "d8z3");
  EXPECT_TRUE(layout.actor.offload_weights); // asleep while the engine works
  EXPECT_EQ(layout.actor.micro_batch_tokens, 16384);
  EXPECT_EQ(settings_of(recipe).reward.kind, "model");
}

TEST(FromOpenRlhf, DapoHasNoCriticAndSaysWhatIsNotPlanned) {
  const auto recipe = recipe_of_script(dapo);
  EXPECT_EQ(recipe.layout.critic.count, 0u);
  const auto settings = settings_of(recipe);
  EXPECT_EQ(settings.workflow, "grpo");
  EXPECT_EQ(settings.algorithm.kl_in, "loss");
  EXPECT_EQ(settings.reward.kind, "rule");
  EXPECT_EQ(settings.rollout.n, 8);
  EXPECT_EQ(settings.algorithm.mini_batches, 8);
  const auto filtering
    = std::ranges::find_if(recipe.values, [](const ReadValue& value) {
        return value.value.key == "dynamic_filtering";
      });
  ASSERT_NE(filtering, recipe.values.end());
  EXPECT_EQ(filtering->fate, Fate::not_modelled);
}

TEST(FromOpenRlhf, AsynchronousTrainingLagsOneStep) {
  const auto recipe = recipe_of_script(async_agent);
  EXPECT_EQ(recipe.layout.lag, 1u);
  EXPECT_EQ(print(recipe.layout),
            "generation 0-3 d2t2, actor 4-7 d4z1, ref 4-7 d4, lag 1");
  const auto settings = settings_of(recipe);
  EXPECT_EQ(settings.algorithm.advantage, "reinforce_pp");
  EXPECT_EQ(settings.rollout.max_new_tokens, 64000);
}

TEST(FromOpenRlhf, ColocatedAsynchronousEnginesHaveDevicesOfTheirOwn) {
  const auto recipe = recipe_of_script(R"sh(
python3 -m openrlhf.cli.train_ppo_ray \
  --ref_num_gpus_per_node 4 --reward_num_gpus_per_node 4 \
  --critic_num_gpus_per_node 4 --actor_num_gpus_per_node 4 \
  --vllm_num_engines 2 --vllm_tensor_parallel_size 2 \
  --colocate_all_models --async_train --zero_stage 3 \
  --pretrain meta-llama/Llama-3.2-1B --reward_pretrain meta-llama/Llama-3.2-1B
)sh");
  EXPECT_EQ(print(recipe.layout),
            "generation 0-3 d2t2, actor 4-7 d4z3, critic 4-7 d4z3, ref 4-7 "
            "d4z3, reward 4-7 d4z3, lag 1");
  EXPECT_EQ(recipe.work.num_devices(), 8u);
  EXPECT_FALSE(recipe.layout.engine_sleeps);
}

TEST(FromOpenRlhf, TensorDegreesCutFrozenModelsToo) {
  const auto recipe
    = recipe_of_script(dapo
                       + "python3 x --ds_tensor_parallel_size 2 "
                         "--zero_stage 2\n");
  EXPECT_EQ(to_string(recipe.layout.actor.strategy), "d4t2z1");
  EXPECT_EQ(to_string(recipe.layout.ref.strategy), "d4t2");
}

TEST(FromOpenRlhf, EveryValueIsAccountedFor) {
  for (const auto& script : {ppo_70b, ppo_hybrid, dapo, async_agent})
    for (const auto& value : recipe_of_script(script).values)
      EXPECT_NE(value.fate, Fate::unknown) << value.value.key;
}
