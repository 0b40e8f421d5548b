// Recipes of DeepSpeed-Chat, step 3, by their facts: training_scripts of
// microsoft/DeepSpeedExamples (opt/single_node/run_13b.sh,
// opt/multi_node/run_66b.sh, llama2/run_llama2_7b.sh). Their models are the
// scripts' arguments, which a user gives after the file.
#include "config/settings/settings.hpp"

#include "tests/support/plans/recipes.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::plans;
using support::recipe_of_script;
using support::settings_of;
using ::testing::HasSubstr;

namespace {

const std::string beginning = R"sh(
ACTOR_MODEL_PATH=$1
CRITIC_MODEL_PATH=$2
ACTOR_ZERO_STAGE=$3
CRITIC_ZERO_STAGE=$4
if [ "$ACTOR_ZERO_STAGE" == "" ]; then
    ACTOR_ZERO_STAGE=3
fi
if [ "$CRITIC_ZERO_STAGE" == "" ]; then
    CRITIC_ZERO_STAGE=3
fi
mkdir -p $OUTPUT
)sh";

std::string script(const std::string& models, const std::string& flags) {
  return beginning
         + "deepspeed --master_port 12346 main.py --data_path "
           "Dahoas/rm-static --actor_model_name_or_path $ACTOR_MODEL_PATH "
           "--critic_model_name_or_path $CRITIC_MODEL_PATH "
         + flags
         + " --max_answer_seq_len 256 --max_prompt_seq_len 256 --ppo_epochs 1 "
           "--gradient_accumulation_steps 1 --deepspeed --seed 1234 "
           "--enable_hybrid_engine --actor_zero_stage $ACTOR_ZERO_STAGE "
           "--critic_zero_stage $CRITIC_ZERO_STAGE "
           "--actor_gradient_checkpointing &> $OUTPUT/training.log\n"
         + (models.empty() ? "" : "python3 overrides " + models + "\n");
}

const std::string opt_13b
  = script("actor_model_name_or_path=facebook/opt-13b "
           "critic_model_name_or_path=facebook/opt-1.3b",
           "--per_device_generation_batch_size 16 "
           "--per_device_training_batch_size 16 --generation_batches 1 "
           "--inference_tp_size 2 --actor_lora_dim 128");
const std::string opt_66b
  = script("actor_model_name_or_path=facebook/opt-66b "
           "critic_model_name_or_path=facebook/opt-1.3b num_nodes=8",
           "--per_device_train_batch_size 4 "
           "--per_device_mini_train_batch_size 4 "
           "--generation_batch_numbers 1 --inference_tp_size 8 "
           "--tp_gather_partition_size 4");
const std::string llama_7b
  = script("actor_model_name_or_path=meta-llama/Llama-2-7b "
           "critic_model_name_or_path=meta-llama/Llama-2-7b",
           "--per_device_generation_batch_size 1 "
           "--per_device_training_batch_size 1 --offload_reference_model");

} // namespace

TEST(FromDeepSpeedChat, Opt13bHasFourModelsOnAllDevices) {
  const auto recipe = recipe_of_script(opt_13b);
  EXPECT_EQ(recipe.system, System::deepspeed_chat);
  EXPECT_EQ(print(recipe.layout),
            "generation 0-7 d4t2, actor 0-7 d8z3, critic 0-7 d8z3, ref 0-7 "
            "d8z3, reward 0-7 d8z3");
  const auto settings = settings_of(recipe);
  EXPECT_EQ(settings.workflow, "ppo");
  EXPECT_EQ(settings.data.batch_size, 128);
  EXPECT_EQ(settings.algorithm.mini_batches, 1);
  EXPECT_FALSE(settings.rollout.kv_cache_gb); // what a batch needs
}

TEST(FromDeepSpeedChat, Opt66bIsOnSeveralNodesByAnArgument) {
  const auto recipe = recipe_of_script(opt_66b);
  EXPECT_EQ(recipe.work.num_devices(), 64u);
  EXPECT_EQ(to_string(recipe.layout.generation.strategy), "d8t8");
  EXPECT_EQ(settings_of(recipe).data.batch_size, 256);
}

TEST(FromDeepSpeedChat, LlamaOffloadsItsReference) {
  const auto recipe = recipe_of_script(llama_7b);
  EXPECT_TRUE(recipe.layout.ref.offload_weights);
  EXPECT_FALSE(recipe.layout.reward.offload_weights);
  EXPECT_EQ(settings_of(recipe).data.batch_size, 8);
}

TEST(FromDeepSpeedChat, AModelThatIsTheScriptsArgumentIsAskedFor) {
  try {
    recipe_of_script(script("", ""));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("actor_model_name_or_path=NAME after the file"));
  }
}

TEST(FromDeepSpeedChat, TextsOfPretrainingAreTrainedOnToo) {
  const auto flags = "--unsupervised_dataset_name wikitext "
                     "--unsupervised_dataset_config_name wikitext-103-raw-v1 ";
  const auto models = "actor_model_name_or_path=facebook/opt-13b "
                      "critic_model_name_or_path=facebook/opt-1.3b";
  const auto usual = settings_of(recipe_of_script(script(models, flags)));
  EXPECT_EQ(usual.data.ptx, "texts.jsonl");
  EXPECT_EQ(usual.algorithm.loss.ptx_coef, 27.8);
  EXPECT_EQ(ptx_rows(usual), usual.data.batch_size);
  const auto chosen = settings_of(
    recipe_of_script(script(models, std::string(flags) + "--unsup_coef 0.5")));
  EXPECT_EQ(chosen.algorithm.loss.ptx_coef, 0.5);
}

TEST(FromDeepSpeedChat, EveryValueIsAccountedFor) {
  for (const auto& text : {opt_13b, opt_66b, llama_7b})
    for (const auto& value : recipe_of_script(text).values)
      EXPECT_NE(value.fate, Fate::unknown) << value.value.key;
}
