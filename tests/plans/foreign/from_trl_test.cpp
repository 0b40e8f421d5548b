// Recipes for TRL by their facts: huggingface/open-r1 (OpenR1-Zero-7B-Math
// v08.00, DeepSeek-R1-Distill-Qwen-1.5B demo, its accelerate files), and the
// server mode of TRL's page on vLLM.
#include "config/settings/settings.hpp"

#include "tests/support/plans/recipes.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::plans;
using support::recipe_of_script;
using support::recipe_of_yaml;
using support::settings_of;

namespace {

const std::string zero_7b = R"yaml(
model_name_or_path: Qwen/Qwen2.5-7B
torch_dtype: bfloat16
dataset_name: open-r1/DAPO-Math-17k-Processed
beta: 0.0
bf16: true
do_eval: false
use_vllm: true
do_eval: false
gradient_accumulation_steps: 16
generation_batch_size: 512
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: false
learning_rate: 1.0e-06
max_prompt_length: 1024
max_completion_length: 8192
num_generations: 16
num_iterations: 1
per_device_train_batch_size: 4
reward_funcs:
- accuracy
- format
vllm_mode: colocate
)yaml";

const std::string zero3 = R"yaml(
compute_environment: LOCAL_MACHINE
deepspeed_config:
  offload_optimizer_device: none
  offload_param_device: none
  zero3_init_flag: true
  zero_stage: 3
distributed_type: DEEPSPEED
num_machines: 1
num_processes: 8
)yaml";

const std::string distill_demo = R"yaml(
model_name_or_path: deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B
use_vllm: true
vllm_device: auto
vllm_gpu_memory_utilization: 0.7
gradient_accumulation_steps: 16
max_prompt_length: 512
max_completion_length: 1024
num_generations: 7
per_device_train_batch_size: 16
num_processes: 7
zero_stage: 2
beta: 0.04
)yaml";

const std::string server = R"sh(
CUDA_VISIBLE_DEVICES=0,1,2,3 trl vllm-serve --model Qwen/Qwen2.5-7B \
  --tensor-parallel-size 2 --data-parallel-size 2 &
CUDA_VISIBLE_DEVICES=4,5,6,7 accelerate launch --num_processes 4 train.py \
  --model_name_or_path Qwen/Qwen2.5-7B --use_vllm True --vllm_mode server \
  --zero_stage 3 --per_device_train_batch_size 8 --num_generations 8 \
  --max_completion_length 2048
)sh";

} // namespace

TEST(FromTrl, AFileOfItsAndOneOfAccelerateTogetherAreTheRecipe) {
  const auto recipe = recipe_of_yaml(zero_7b + zero3);
  EXPECT_EQ(recipe.system, System::trl);
  EXPECT_EQ(print(recipe.layout), "generation 0-7 d8, actor 0-7 d8z3");
  const auto settings = settings_of(recipe);
  EXPECT_EQ(settings.workflow, "grpo");
  EXPECT_EQ(settings.data.batch_size, 32); // 512 answers, 16 a prompt
  EXPECT_EQ(settings.rollout.n, 16);
  // 512 answers are one update of 4 x 8 x 16
  EXPECT_EQ(settings.algorithm.mini_batches, 1);
  EXPECT_EQ(settings.algorithm.kl_in, "none");
}

TEST(FromTrl, AnOldVersionsEngineHasADeviceOfItsOwn) {
  const auto recipe = recipe_of_yaml(distill_demo);
  EXPECT_EQ(print(recipe.layout),
            "generation 0 d1, actor 1-7 d7z1, ref 1-7 d7");
  EXPECT_EQ(recipe.work.num_devices(), 8u);
  EXPECT_EQ(recipe.layout.engine_share, 0.7);
  EXPECT_EQ(settings_of(recipe).algorithm.kl_in, "loss");
}

TEST(FromTrl, AServersFlagsAreTheEnginesDegrees) {
  const auto recipe = recipe_of_script(server);
  EXPECT_EQ(print(recipe.layout), "generation 0-3 d2t2, actor 4-7 d4z3");
  EXPECT_FALSE(recipe.layout.engine_sleeps);
  EXPECT_EQ(settings_of(recipe).data.batch_size, 4); // 8 x 4 answers, 8 each
}

TEST(FromTrl, EveryValueIsAccountedFor) {
  for (const auto& recipe :
       {recipe_of_yaml(zero_7b + zero3), recipe_of_yaml(distill_demo),
        recipe_of_script(server)})
    for (const auto& value : recipe.values)
      EXPECT_NE(value.fate, Fate::unknown) << value.value.key;
}
