// Recipes of verl by their facts: examples/grpo_trainer and ppo_trainer of
// volcengine/verl (run_qwen2-7b.sh, run_qwen2_5-7b_math_megatron_diff_tp.sh,
// run_qwen3moe-30b_megatron_96gb.sh, run_qwen2-7b_rm.sh).
#include "config/settings/settings.hpp"
#include "plans/plan/execution_plan.hpp"

#include "tests/support/plans/recipes.hpp"
#include <gmock/gmock.h>

#include <algorithm>

using namespace troupe;
using namespace troupe::plans;
using support::recipe_of_script;
using support::settings_of;
using ::testing::HasSubstr;

namespace {

const std::string grpo_7b = R"sh(
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \
  data.train_batch_size=1024 data.max_prompt_length=512 \
  data.max_response_length=1024 \
  actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct \
  actor_rollout_ref.actor.ppo_mini_batch_size=256 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=40 \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.actor.kl_loss_coef=0.001 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
  actor_rollout_ref.rollout.n=5 \
  actor_rollout_ref.ref.fsdp_config.param_offload=True \
  trainer.n_gpus_per_node=8 trainer.nnodes=1 trainer.logger=['console'] $@
)sh";

const std::string megatron_grpo_7b = R"sh(
HOME_DATA=$HOME/data
python3 -m verl.trainer.main_ppo --config-path=config \
  --config-name='ppo_megatron_trainer.yaml' algorithm.adv_estimator=grpo \
  data.train_files="['$HOME_DATA/a.parquet', '$HOME_DATA/b.parquet']" \
  data.train_batch_size=1024 data.max_prompt_length=1024 \
  data.max_response_length=1024 \
  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \
  actor_rollout_ref.actor.ppo_mini_batch_size=256 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
  actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2 \
  actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.rollout.tensor_model_parallel_size=4 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
  actor_rollout_ref.rollout.n=5 \
  actor_rollout_ref.ref.megatron.pipeline_model_parallel_size=2 \
  actor_rollout_ref.ref.megatron.tensor_model_parallel_size=2 \
  algorithm.use_kl_in_reward=False trainer.n_gpus_per_node=8 trainer.nnodes=1
)sh";

const std::string moe_30b = R"sh(
NNODES=${NNODES:-1}
NGPUS=${NGPUS:-8}
max_prompt=$((1024 * 2))
max_response=$((1024 * 8))
offload=True
COMMON_TP=${COMMON_TP:-1}
COMMON_EP=${COMMON_EP:-8}
ACTOR_TP=${ACTOR_TP:-$COMMON_TP}
python3 -m verl.trainer.main_ppo --config-name='ppo_megatron_trainer' \
  algorithm.adv_estimator=grpo algorithm.use_kl_in_reward=False \
  data.max_prompt_length=${max_prompt} data.max_response_length=${max_response} \
  data.train_batch_size=512 actor_rollout_ref.rollout.n=16 \
  actor_rollout_ref.model.path="Qwen/Qwen3-30B-A3B-Base" \
  actor_rollout_ref.actor.use_kl_loss=False \
  actor_rollout_ref.actor.use_dynamic_bsz=True \
  actor_rollout_ref.actor.ppo_mini_batch_size=128 \
  actor_rollout_ref.actor.ppo_max_token_len_per_gpu=$(((max_prompt + max_response))) \
  actor_rollout_ref.actor.megatron.param_offload=${offload} \
  actor_rollout_ref.actor.megatron.optimizer_offload=${offload} \
  actor_rollout_ref.actor.megatron.tensor_model_parallel_size=${ACTOR_TP} \
  actor_rollout_ref.actor.megatron.expert_model_parallel_size=${COMMON_EP} \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.7 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=4 \
  trainer.n_gpus_per_node="${NGPUS}" trainer.nnodes="${NNODES}"
)sh";

const std::string ppo_with_reward_model = R"sh(
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=gae \
  data.train_batch_size=1024 data.max_prompt_length=1024 \
  data.max_response_length=512 \
  actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct \
  actor_rollout_ref.actor.ppo_mini_batch_size=256 \
  actor_rollout_ref.actor.ppo_micro_batch_size=16 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
  actor_rollout_ref.ref.fsdp_config.param_offload=True \
  critic.model.path=Qwen/Qwen2-7B-Instruct critic.ppo_micro_batch_size=16 \
  reward_model.enable=True \
  reward_model.model.path=sfairXC/FsfairX-Gemma2-RM-v0.1 \
  reward_model.model.fsdp_config.param_offload=True \
  algorithm.kl_ctrl.kl_coef=0.001 trainer.n_gpus_per_node=8 trainer.nnodes=1
)sh";

Fate fate_of(const Recipe& recipe, const std::string& key) {
  for (const auto& value : recipe.values)
    if (value.value.key == key)
      return value.fate;
  ADD_FAILURE() << key << " was not read";
  return Fate::unknown;
}

} // namespace

TEST(FromVerl, Grpo7bIsColocatedWithShardedTraining) {
  const auto recipe = recipe_of_script(grpo_7b);
  EXPECT_EQ(recipe.system, System::verl);
  const auto& layout = recipe.layout;
  EXPECT_TRUE(layout.is_colocated());
  EXPECT_EQ(to_string(layout.generation.strategy), "d4t2");
  EXPECT_EQ(to_string(layout.actor.strategy), "d8z3");
  EXPECT_TRUE(layout.ref.offload_weights);
  EXPECT_FALSE(layout.actor.offload_optimizer);
  EXPECT_EQ(layout.engine_share, 0.6);
  EXPECT_EQ(layout.actor.micro_batch_tokens, 40 * (512 + 1024));
  const auto settings = settings_of(recipe);
  EXPECT_EQ(settings.workflow, "grpo");
  EXPECT_EQ(settings.data.batch_size, 1024);
  EXPECT_EQ(settings.rollout.n, 5);
  EXPECT_EQ(settings.rollout.max_new_tokens, 1024);
  EXPECT_EQ(settings.algorithm.mini_batches, 4);
  EXPECT_EQ(settings.algorithm.kl_in, "loss");
  EXPECT_EQ(settings.algorithm.old_logprobs, "recompute");
}

TEST(FromVerl, TheEnginesShareBecomesBytesOfCache) {
  const auto settings = settings_of(recipe_of_script(grpo_7b));
  // 60 % of 80 GB less 7.6 B weights of 2 bytes over 2 devices
  ASSERT_TRUE(settings.rollout.kv_cache_gb);
  EXPECT_NEAR(*settings.rollout.kv_cache_gb, 48 - 7.6, 0.1);
}

TEST(FromVerl, MegatronsDegreesAreThoseOfAllPasses) {
  const auto recipe = recipe_of_script(megatron_grpo_7b);
  EXPECT_EQ(to_string(recipe.layout.generation.strategy), "d2t4");
  EXPECT_EQ(to_string(recipe.layout.actor.strategy), "d2p2t2z1");
  EXPECT_EQ(to_string(recipe.layout.ref.strategy), "d2p2t2");
  EXPECT_EQ(settings_of(recipe).algorithm.kl_in, "loss");
}

TEST(FromVerl, AScriptOfVariablesIsResolvedAndExpertDegreesAreListed) {
  const auto recipe = recipe_of_script(moe_30b);
  EXPECT_EQ(to_string(recipe.layout.generation.strategy), "d2t4");
  EXPECT_EQ(to_string(recipe.layout.actor.strategy), "d8z1");
  EXPECT_TRUE(recipe.layout.actor.offload_weights);
  EXPECT_TRUE(recipe.layout.actor.offload_optimizer);
  EXPECT_EQ(recipe.layout.actor.micro_batch_tokens, 10240);
  EXPECT_EQ(recipe.layout.ref.count, 0u); // no KL term, no reference model
  EXPECT_EQ(
    fate_of(recipe,
            "actor_rollout_ref.actor.megatron.expert_model_parallel_size"),
    Fate::not_modelled);
  EXPECT_EQ(settings_of(recipe).rollout.max_new_tokens, 8192);
}

TEST(FromVerl, PpoOfAnOldVersionHasFourModelsAndItsKlInTheReward) {
  const auto recipe = recipe_of_script(ppo_with_reward_model);
  const auto settings = settings_of(recipe);
  EXPECT_EQ(settings.workflow, "ppo");
  EXPECT_EQ(settings.algorithm.kl_in, "reward");
  EXPECT_EQ(settings.models.at("critic").path, "Qwen/Qwen2-7B-Instruct");
  EXPECT_EQ(settings.models.at("reward").path,
            "sfairXC/FsfairX-Gemma2-RM-v0.1");
  EXPECT_TRUE(recipe.layout.reward.offload_weights);
  EXPECT_EQ(recipe.layout.actor.micro_batch_tokens, 2 * (1024 + 512));
}

TEST(FromVerl, EveryValueIsAccountedFor) {
  for (const auto& script :
       {grpo_7b, megatron_grpo_7b, moe_30b, ppo_with_reward_model}) {
    const auto recipe = recipe_of_script(script);
    for (const auto& value : recipe.values)
      EXPECT_NE(value.fate, Fate::unknown) << value.value.key;
  }
}

TEST(FromVerl, KeysOfModelsThatAreNotThereAreNoMystery) {
  const auto recipe = recipe_of_script(
    moe_30b
    + "\npython3 x actor_rollout_ref.ref.fsdp_config.param_offload=True "
      "critic.optim.lr=1e-5 "
      "actor_rollout_ref.actor.fsdp_config.fsdp_size=-1\n");
  for (const auto& value : recipe.values)
    EXPECT_NE(value.fate, Fate::unknown) << value.value.key;
}

TEST(FromVerl, AnUnknownKeyIsListedWithItsLine) {
  const auto recipe
    = recipe_of_script(grpo_7b + "\npython3 x actor_rollout_ref.mystery=1\n");
  EXPECT_EQ(fate_of(recipe, "actor_rollout_ref.mystery"), Fate::unknown);
  EXPECT_THAT(print_account(recipe, /*all=*/false),
              HasSubstr("run.sh:16: actor_rollout_ref.mystery=1 NOT "
                        "UNDERSTOOD"));
}

TEST(FromVerl, ATensorDegreeThatDoesNotDivideTheDevicesIsRefusedAtItsLine) {
  auto script = grpo_7b;
  const std::string two = "tensor_model_parallel_size=2";
  script.replace(script.find(two), two.size(), "tensor_model_parallel_size=3");
  try {
    recipe_of_script(script);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("run.sh:10"));
    EXPECT_THAT(error.what(), HasSubstr("divisor of 8"));
  }
}

TEST(FromVerl, AValueThatOnlyTheMachineKnowsAsksForIt) {
  auto script = grpo_7b;
  const std::string eight = "n_gpus_per_node=8";
  script.replace(script.find(eight), eight.size(), "n_gpus_per_node=$GPUS");
  try {
    recipe_of_script(script);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'$GPUS'"));
    EXPECT_THAT(error.what(),
                HasSubstr("trainer.n_gpus_per_node=VALUE after the file"));
  }
}
