// Numbers of other systems' files, and the places of those that make no sense.
#include "plans/foreign/foreign_reader.hpp"

#include "tests/support/plans/recipes.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::plans;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace {

/// A system's script up to the count, which the second line sets.
struct CountOfSystem {
  const char* script;
  const char* key;
};

constexpr CountOfSystem counts[] = {
  {"python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=a",
   "trainer.nnodes"},
  {"python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=a",
   "trainer.n_gpus_per_node"},
  {"python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=a",
   "actor_rollout_ref.rollout.tensor_model_parallel_size"},
  {"python3 -m openrlhf.cli.train_ppo_ray --pretrain a",
   "actor_num_gpus_per_node"},
  {"python3 -m openrlhf.cli.train_ppo_ray --pretrain a --vllm_num_engines 1",
   "vllm_tensor_parallel_size"},
  {"accelerate launch train.py --model_name_or_path a --vllm_mode colocate",
   "num_processes"},
  {"accelerate launch train.py --model_name_or_path a --vllm_mode colocate",
   "num_generations"},
  {"python3 examples/run_grpo_math.py policy.model_name=a",
   "cluster.gpus_per_node"},
  {"python3 examples/run_grpo_math.py policy.model_name=a",
   "cluster.num_nodes"},
  {"python3 -m areal.launcher actor.path=a allocation_mode=vllm:d1+d1",
   "cluster.n_nodes"},
  {"python3 -m areal.launcher actor.path=a allocation_mode=vllm:d1+d1",
   "gconfig.n_samples"},
  {"deepspeed main.py --actor_model_name_or_path a "
   "--critic_model_name_or_path a --actor_zero_stage 3",
   "num_gpus"},
  {"deepspeed main.py --actor_model_name_or_path a "
   "--critic_model_name_or_path a --enable_hybrid_engine",
   "inference_tp_size"},
};

ForeignConfig one_value(const std::string& text) {
  return {.values = {{"key", text, {"run.sh", 3}}}};
}

} // namespace

TEST(ForeignReader, ACountBelowOneIsRefusedAtItsLine) {
  for (const auto& [script, key] : counts)
    for (const char* value : {"0", "-1", "4294967297"}) {
      const auto text = std::string(script) + " \\\n  " + key + "=" + value;
      try {
        support::recipe_of_script(text + "\n");
        ADD_FAILURE() << text;
      } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("run.sh:2: "), HasSubstr(key),
                                        HasSubstr("a count from 1 to")))
          << text;
      }
    }
}

TEST(ForeignReader, NoEnginesAreACountToo) {
  const auto recipe = support::recipe_of_script(
    "python3 -m openrlhf.cli.train_ppo_ray --pretrain a --vllm_num_engines "
    "0\n");
  EXPECT_FALSE(recipe.layout.is_split());
}

TEST(ForeignReader, AWholeNumberMayBeWrittenAsAFraction) {
  Recipe recipe;
  for (const auto& [text, number] :
       {std::pair{"1e6", 1000000}, {"2048.0", 2048}, {"-3", -3}}) {
    const auto config = one_value(text);
    EXPECT_EQ(ForeignReader(config, recipe).find_integer({"key"}, ""), number);
  }
}

TEST(ForeignReader, ANumberThatNoIntegerHoldsIsRefusedAtItsLine) {
  Recipe recipe;
  for (const char* text : {"inf", "-inf", "nan", "1e30", "-1e30", "2.5", "x"}) {
    const auto config = one_value(text);
    try {
      ForeignReader(config, recipe).find_integer({"key"}, "");
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("run.sh:3: key: expected a whole"));
    }
  }
}
