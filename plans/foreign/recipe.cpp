#include "plans/foreign/recipe.hpp"

#include "plans/foreign/foreign_reader.hpp"
#include "plans/plan/plan_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace troupe::plans {

namespace {

/// Words that only one system's files have: beginnings of keys, or parts
/// of a program's name.
struct SystemWords {
  System system;
  std::array<const char*, 4> keys;
  const char* program;
};
constexpr auto system_words = std::to_array<SystemWords>({
  {System::verl,
   {"actor_rollout_ref.", "reward_model.model.", "critic.ppo_",
    "trainer.nnodes"},
   "verl"},
  {System::openrlhf,
   {"vllm_num_engines", "actor_num_gpus_per_node", "micro_rollout_batch_size",
    "rollout_batch_size"},
   "openrlhf"},
  {System::nemo_rl,
   {"policy.model_name", "grpo.num_prompts_per_step", "policy.dtensor_cfg.",
    "policy.megatron_cfg."},
   "run_grpo"},
  {System::areal,
   {"allocation_mode", "gconfig.", "actor.mb_spec.", "rollout.max_head_offpol"},
   "areal"},
  {System::deepspeed_chat,
   {"actor_zero_stage", "inference_tp_size", "enable_hybrid_engine",
    "max_answer_seq_len"},
   "DeepSpeed-Chat"},
  {System::trl,
   {"num_generations", "max_completion_length", "vllm_mode", "vllm_serve."},
   "trl"},
});

std::size_t words_of(const ForeignConfig& config, const SystemWords& words) {
  std::size_t count = 0;
  for (const auto& value : config.values)
    for (const char* key : words.keys)
      count += value.key.starts_with(key);
  for (const auto& program : config.programs)
    count += program.find(words.program) != program.npos;
  return count;
}

/// DeepSpeed computes an offloaded optimizer's step on the host.
bool steps_on_host(System system) {
  return system == System::openrlhf || system == System::trl
         || system == System::deepspeed_chat;
}

/// Makes settings fit together that other systems combine and ours refuse.
void settle(Recipe& recipe) {
  auto& work = recipe.work;
  const auto advantage = work.get("algorithm.advantage");
  if (work.get("rollout.n") == "1"
      && (advantage == "group" || advantage == "rloo")) {
    work.set("algorithm.advantage", "reinforce_pp");
    recipe.notes.push_back(
      {{},
       "a group of one response has no advantage: planned as reinforce++, "
       "which takes as long"});
  }
  if (recipe.layout.actor.offload_optimizer && steps_on_host(recipe.system))
    recipe.notes.push_back({{}, host_optimizer_note});
  if (work.get("run.steps").empty())
    recipe.assumed.push_back({"(number of steps)", "100", "run.steps"});
}

} // namespace

const char* to_string(System system) {
  switch (system) {
  case System::verl:
    return "verl";
  case System::openrlhf:
    return "openrlhf";
  case System::trl:
    return "trl";
  case System::nemo_rl:
    return "nemo-rl";
  case System::areal:
    return "areal";
  case System::deepspeed_chat:
    return "deepspeed-chat";
  }
  return "";
}

const std::vector<std::string>& system_names() {
  static const std::vector<std::string> names
    = {"verl", "openrlhf", "trl", "nemo-rl", "areal", "deepspeed-chat"};
  return names;
}

System parse_system(const std::string& name) {
  for (const auto& words : system_words)
    if (name == to_string(words.system))
      return words.system;
  throw ConfigError(
    {.place = {"command line", 0},
     .path = "--from",
     .expected = fmt::format("one of {}", fmt::join(system_names(), ", ")),
     .got = "'" + name + "'",
     .hint = quoted_nearest(name, system_names())});
}

System detect_system(const ForeignConfig& config) {
  const auto best
    = std::ranges::max_element(system_words, {}, [&](const SystemWords& words) {
        return words_of(config, words);
      });
  if (words_of(config, *best) > 0)
    return best->system;
  throw ConfigError(
    {.place = config.values.empty() ? Place{} : config.values[0].place,
     .path = "",
     .expected
     = fmt::format("a configuration of {}", fmt::join(system_names(), ", ")),
     .got = "none of their keys",
     .hint = "--from SYSTEM"});
}

void Workload::set(const std::string& key, const std::string& value) {
  const auto found = std::ranges::find(
    settings, key, &std::pair<std::string, std::string>::first);
  if (found == settings.end())
    settings.emplace_back(key, value);
  else
    found->second = value;
}

std::string Workload::get(const std::string& key) const {
  const auto found = std::ranges::find(
    settings, key, &std::pair<std::string, std::string>::first);
  return found == settings.end() ? "" : found->second;
}

Recipe read_recipe(System system, const ForeignConfig& config) {
  Recipe recipe{.system = system};
  ForeignReader reader(config, recipe);
  switch (system) {
  case System::verl:
    read_verl(reader, recipe);
    break;
  case System::openrlhf:
    read_openrlhf(reader, recipe);
    break;
  case System::trl:
    read_trl(reader, recipe);
    break;
  case System::nemo_rl:
    read_nemo_rl(reader, recipe);
    break;
  case System::areal:
    read_areal(reader, recipe);
    break;
  case System::deepspeed_chat:
    read_deepspeed_chat(reader, recipe);
    break;
  }
  settle(recipe);
  reader.finish();
  return recipe;
}

} // namespace troupe::plans
