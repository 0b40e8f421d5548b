// The layouts that other systems can be told.
#include "config/model/known_models.hpp"
#include "config/settings/settings.hpp"
#include "plans/advise/advice.hpp"
#include "plans/cost/plan_problem.hpp"

#include "tests/support/plans/recipes.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::plans;
using support::recipe_of_script;
using support::recipe_of_yaml;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

namespace {

const std::string verl = R"sh(
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \
  data.train_batch_size=256 data.max_response_length=512 \
  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.rollout.tensor_model_parallel_size=4 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.4 \
  actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8
)sh";

const std::string areal
  = "allocation_mode: sglang:d2t2+fsdp:d4\nactor: {path: Qwen/Qwen2.5-1.5B, "
    "kl_ctl: 0.0}\ngconfig: {n_samples: 4, max_new_tokens: 512}\n"
    "cluster: {n_nodes: 1, n_gpus_per_node: 8}\n";

const std::string openrlhf = R"sh(
python3 -m openrlhf.cli.train_ppo_ray --actor_num_gpus_per_node 4 \
  --critic_num_gpus_per_node 2 --ref_num_gpus_per_node 1 \
  --reward_num_gpus_per_node 1 --vllm_num_engines 4 \
  --vllm_tensor_parallel_size 2 --pretrain meta-llama/Llama-3.2-1B \
  --reward_pretrain meta-llama/Llama-3.2-1B --zero_stage 3 \
  --rollout_batch_size 128 --generate_max_len 256
)sh";

const std::string openrlhf_colocated = R"sh(
python3 -m openrlhf.cli.train_ppo_ray --actor_num_gpus_per_node 8 \
  --critic_num_gpus_per_node 8 --ref_num_gpus_per_node 8 \
  --reward_num_gpus_per_node 8 --vllm_num_engines 4 \
  --vllm_tensor_parallel_size 2 --colocate_all_models --vllm_enable_sleep \
  --deepspeed_enable_sleep --pretrain meta-llama/Llama-3.2-1B \
  --reward_pretrain meta-llama/Llama-3.2-1B --zero_stage 3
)sh";

const std::string openrlhf_async = R"sh(
python3 -m openrlhf.cli.train_ppo_ray --actor_num_gpus_per_node 4 \
  --critic_num_gpus_per_node 4 --ref_num_gpus_per_node 4 \
  --reward_num_gpus_per_node 4 --vllm_num_engines 4 \
  --colocate_all_models --async_train --pretrain meta-llama/Llama-3.2-1B \
  --reward_pretrain meta-llama/Llama-3.2-1B --zero_stage 3
)sh";

const std::string areal_vllm
  = "allocation_mode: vllm:d4+d4\nactor: {path: Qwen/Qwen2.5-1.5B, kl_ctl: "
    "0.1}\nrollout: {max_head_offpolicyness: 2}\n"
    "cluster: {n_nodes: 2, n_gpus_per_node: 4}\n";

const std::string trl
  = "model_name_or_path: Qwen/Qwen2.5-1.5B\nnum_processes: 8\nbeta: 0.04\n"
    "num_generations: 8\nper_device_train_batch_size: 8\n"
    "deepspeed_config: {zero_stage: 3, offload_param_device: cpu}\n";

const std::string trl_server = R"sh(
trl vllm-serve --model Qwen/Qwen2.5-1.5B --tensor_parallel_size 2 &
accelerate launch --num_processes 6 train.py --use_vllm --vllm_mode server \
  --model_name_or_path Qwen/Qwen2.5-1.5B
)sh";

const std::string nemo
  = "grpo: {num_prompts_per_step: 64, async_grpo: {enabled: true}}\n"
    "policy:\n  model_name: meta-llama/Llama-3.2-1B\n"
    "  generation: {colocated: {enabled: false, resources: {num_nodes: 1}}}\n"
    "cluster: {gpus_per_node: 8, num_nodes: 2}\n";

const std::string deepspeed_chat = R"sh(
deepspeed --num_gpus 8 main.py --actor_model_name_or_path facebook/opt-1.3b \
  --critic_model_name_or_path facebook/opt-1.3b --actor_zero_stage 3 \
  --critic_zero_stage 3 --enable_hybrid_engine --inference_tp_size 2 \
  --offload_reference_model
)sh";

Recipe recipe_of_text(const std::string& text, const std::string& words = "") {
  const bool is_script = text.starts_with('\n');
  return is_script ? recipe_of_script(text + "python3 x " + words + "\n")
                   : recipe_of_yaml(text, words);
}

/// Returns flags as somebody adds them to a command: what is to be removed is
/// off, those of a server are in commands of their own.
std::string typed(const std::vector<SystemFlag>& flags) {
  std::string words, servers;
  for (const auto& flag : flags) {
    if (flag.key.starts_with("trl"))
      servers += "\n" + print(flag);
    else
      words += " "
               + (flag.value == "False" && flag.is_switch ? flag.key + "=False"
                                                          : print(flag));
  }
  return words + servers;
}

/// Returns the recipe's problem on nodes of eight H100s.
PlanProblem problem_of(const Recipe& recipe) {
  auto settings = support::settings_of(recipe);
  PlanProblem problem;
  problem.hardware = load_hardware("h100x8");
  problem.workflow = make_workflow(settings);
  ImportFacts facts{.device_bytes = 80e9};
  for (const auto& role : problem.workflow.roles) {
    const auto& name = settings.models.at(role.name).path;
    problem.shapes[role.name] = find_known_model(name)->shape;
    problem.shapes[role.name].scalar_head = role.scalar_head;
  }
  problem.cluster = {.nodes = recipe.work.nodes,
                     .devices_per_node = recipe.work.devices_per_node,
                     .workers_per_node = recipe.work.devices_per_node};
  settings.rollout.kv_cache_gb.reset();
  apply_settings(problem, settings,
                 static_cast<std::uint64_t>(problem.hardware.mem_bytes));
  problem.lengths
    = Lengths(settings.data.max_prompt_tokens, settings.rollout.max_new_tokens,
              settings.rollout.max_new_tokens);
  return problem;
}

void nothing(const std::string&) {}

} // namespace

TEST(Expressible, EveryLayoutIsLegalOnItsDevices) {
  for (const auto& recipe : {recipe_of_script(verl), recipe_of_yaml(areal),
                             recipe_of_script(openrlhf)}) {
    const auto problem = problem_of(recipe);
    const auto layouts = layouts_of(recipe, problem);
    EXPECT_GT(layouts.size(), 3u) << to_string(recipe.system);
    for (const auto& layout : layouts) {
      const auto plan = plan_of(layout, problem.workflow, problem.cluster);
      for (const auto& error : check_plan(problem, plan).errors)
        EXPECT_THAT(error.path, Not(HasSubstr("strategy")))
          << print(layout) << ": " << error.message;
    }
  }
}

TEST(Expressible, TheBestIsNoSlowerThanAnyAndThanTheRecipe) {
  const auto recipe = recipe_of_script(verl);
  const auto problem = problem_of(recipe);
  const auto best = best_expressible(recipe, problem, nothing);
  ASSERT_TRUE(best);
  const CostModel costs(problem);
  for (const auto& layout : layouts_of(recipe, problem)) {
    const auto plan = plan_of(layout, problem.workflow, problem.cluster);
    if (!check_plan(problem, plan).ok())
      continue;
    EXPECT_LE(best->step_s, simulate_step_s(problem, costs, plan) + 1e-9)
      << print(layout);
  }
  const auto own = predict_layout(problem, recipe.layout);
  ASSERT_TRUE(own.fits()) << own.why_not;
  EXPECT_LT(best->step_s, own.step_s); // t4 for 7 B is more than it needs
}

TEST(Expressible, OnlySystemsThatSplitHaveSplitLayouts) {
  const auto split_of = [](const Recipe& recipe) {
    return std::ranges::count_if(
      layouts_of(recipe, problem_of(recipe)),
      [](const SystemLayout& layout) { return layout.is_split(); });
  };
  EXPECT_EQ(split_of(recipe_of_script(verl)), 0);
  EXPECT_GT(split_of(recipe_of_yaml(areal)), 0);
}

TEST(SystemFlags, ThoseOfTheRecipesLayoutDoNotChange) {
  for (const auto& recipe : {recipe_of_script(verl), recipe_of_yaml(areal),
                             recipe_of_script(openrlhf)})
    EXPECT_THAT(changed_flags(recipe, recipe.layout, recipe.work), SizeIs(0));
}

TEST(SystemFlags, SayALayoutThatReadsBackAsItself) {
  auto recipe = recipe_of_script(verl);
  const auto problem = problem_of(recipe);
  for (const auto& layout : layouts_of(recipe, problem)) {
    auto script = verl + "python3 x";
    for (const auto& flag : flags_of(System::verl, layout, recipe.work))
      script += " " + flag.key + "=" + flag.value;
    const auto again = recipe_of_script(script + "\n").layout;
    EXPECT_EQ(print(again), print(layout));
  }
}

TEST(SystemFlags, ChangeARecipeIntoEachLayoutOfItsSystem) {
  for (const auto& text :
       {verl, openrlhf, openrlhf_colocated, openrlhf_async, areal, areal_vllm,
        trl, trl_server, nemo, deepspeed_chat}) {
    const auto recipe = recipe_of_text(text);
    const auto layouts = layouts_of(recipe, problem_of(recipe));
    EXPECT_GT(layouts.size(), 3u) << text;
    for (const auto& layout : layouts) {
      const auto words = typed(changed_flags(recipe, layout, recipe.work));
      const auto again = recipe_of_text(text, words).layout;
      EXPECT_EQ(print(again), print(layout))
        << to_string(recipe.system) << ", by " << words << ", of " << text;
    }
  }
}

TEST(SystemFlags, ARecipesOwnLayoutNeedsNoChange) {
  for (const auto& text :
       {verl, openrlhf, openrlhf_colocated, openrlhf_async, areal, areal_vllm,
        trl, trl_server, nemo, deepspeed_chat}) {
    const auto recipe = recipe_of_text(text);
    for (const auto& flag : changed_flags(recipe, recipe.layout, recipe.work))
      ADD_FAILURE() << print(flag) << " for " << text;
  }
}

TEST(SystemFlags, ASwitchStandsAloneOrIsRemoved) {
  const auto recipe = recipe_of_text(openrlhf_colocated);
  auto layout = recipe.layout;
  layout.actor.offload_weights = false;
  layout.ref.offload_weights = true;
  std::vector<std::string> printed;
  for (const auto& flag : changed_flags(recipe, layout, recipe.work))
    printed.push_back(print(flag));
  EXPECT_THAT(printed, ::testing::UnorderedElementsAre(
                         "remove --deepspeed_enable_sleep", "--adam_offload",
                         "--ref_reward_offload"));
  EXPECT_EQ(print(SystemFlag{"--zero_stage", "3"}), "--zero_stage 3");
  EXPECT_EQ(print(SystemFlag{"trainer.nnodes", "2"}), "trainer.nnodes=2");
  EXPECT_EQ(print(SystemFlag{"allocation_mode", "vllm:d1|fsdp:d1"}),
            "allocation_mode='vllm:d1|fsdp:d1'");
}

TEST(SystemFlags, AnEngineIsAskedForWhereNoneGenerates) {
  const auto recipe = recipe_of_text(trl);
  const auto layouts = layouts_of(recipe, problem_of(recipe));
  EXPECT_THAT(changed_flags(recipe, layouts.front(), recipe.work),
              Contains(SystemFlag{"--use_vllm", "True"}));
}

TEST(SystemFlags, AnArealRecipeKeepsItsEngine) {
  const auto recipe = recipe_of_text(areal_vllm);
  for (const auto& layout : layouts_of(recipe, problem_of(recipe)))
    EXPECT_THAT(flags_of(System::areal, layout, recipe.work).front().value,
                ::testing::StartsWith("vllm:"));
}

TEST(SystemFlags, AllocationModeReadsBackAsItself) {
  const auto recipe = recipe_of_yaml(areal);
  for (const auto& layout : layouts_of(recipe, problem_of(recipe))) {
    const auto flags = flags_of(System::areal, layout, recipe.work);
    const auto again
      = recipe_of_yaml(areal, flags[0].key + "='" + flags[0].value + "'");
    EXPECT_EQ(to_string(again.layout.actor.strategy),
              to_string(layout.actor.strategy))
      << flags[0].value;
    EXPECT_EQ(again.layout.is_split(), layout.is_split());
  }
}

TEST(SystemFlags, TheBestLayoutsShareHoldsItsWeightsAndCache) {
  const auto recipe = recipe_of_script(verl);
  const auto best = best_expressible(recipe, problem_of(recipe), nothing);
  ASSERT_TRUE(best);
  EXPECT_GT(best->layout.engine_share, 0.03);
  EXPECT_LE(best->layout.engine_share, 0.95);
}

TEST(LayoutChanges, ShortWordsChangeDegrees) {
  const auto layout = recipe_of_script(verl).layout;
  EXPECT_EQ(to_string(changed_layout(layout, "tp", "2").generation.strategy),
            "d4t2");
  EXPECT_EQ(to_string(changed_layout(layout, "train_tp", "2").actor.strategy),
            "d4t2z1");
  EXPECT_TRUE(changed_layout(layout, "offload", "all").actor.offload_weights);
  EXPECT_EQ(changed_layout(layout, "lag", "1").lag, 1u);
  EXPECT_EQ(changed_layout(layout, "share", "0.7").engine_share, 0.7);
}

TEST(LayoutChanges, MistakesNameTheNearestKey) {
  const auto layout = recipe_of_script(verl).layout;
  EXPECT_THROW(changed_layout(layout, "tp", "3"), ConfigError);
  EXPECT_THROW(parse_change("tp"), ConfigError);
  for (const auto& [key, value] : {std::pair{"tp", "2.7"},
                                   {"zero", "2.5"},
                                   {"lag", "-1"},
                                   {"tp", "0"},
                                   {"train_pp", "4294967296"},
                                   {"micro_batch_tokens", "1e3"},
                                   {"share", "1.5"},
                                   {"share", "nan"}})
    EXPECT_THROW(changed_layout(layout, key, value), ConfigError) << key;
  try {
    changed_layout(layout, "ofload", "all");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("try 'offload'"));
  }
}

TEST(LayoutChanges, AnotherNumberOfDevicesKeepsDegrees) {
  const auto layout = recipe_of_yaml(areal).layout;
  EXPECT_EQ(print(resized(layout, 8, 16)),
            "generation 0-7 d4t2, actor 8-15 d8z3");
  EXPECT_THROW(resized(layout, 8, 2), ConfigError);
}

TEST(Inexpressible, NamesWhatASystemHasNoFlagFor) {
  const auto recipe = recipe_of_script(verl);
  const auto problem = problem_of(recipe);
  auto plan = plan_of(recipe.layout, problem.workflow, problem.cluster);
  EXPECT_THAT(inexpressible(System::verl, problem.workflow, plan), SizeIs(0));
  auto& ref = plan.calls.at("ref_inf");
  ref.devices.resize(4);
  ref.strategy = {.dp = 4};
  plan.calls.at("actor_gen").chunks = 4;
  const auto sentences = inexpressible(System::verl, problem.workflow, plan);
  EXPECT_THAT(sentences, Contains(HasSubstr("2 different sets of devices")));
  EXPECT_THAT(sentences, Contains(HasSubstr("actor_gen in chunks")));
}

TEST(Inexpressible, NamesCallsWhoseExpertsAreDealt) {
  const auto recipe = recipe_of_script(verl);
  const auto problem = problem_of(recipe);
  auto plan = plan_of(recipe.layout, problem.workflow, problem.cluster);
  plan.calls.at("actor_train").strategy = parse_strategy("d8e8");
  EXPECT_THAT(inexpressible(System::verl, problem.workflow, plan),
              Contains("actor_train with experts dealt to devices (e): verl is "
                       "told no expert degrees here"));
}
