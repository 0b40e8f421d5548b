#include "plans/foreign/recipe_parts.hpp"

#include "plans/check/plan_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace troupe::plans {

namespace {

Zero zero_of(int states, std::uint32_t dp) {
  if (dp < 2 || states <= 0)
    return Zero::none;
  return states >= 3 ? Zero::z3 : Zero::z1;
}

/// Words of other systems for estimators of advantages.
const std::map<std::string, std::string>& estimators() {
  static const std::map<std::string, std::string> ours = {
    {"gae", "gae"},
    {"grpo", "group"},
    {"group_norm", "group"},
    {"dr_grpo", "group"},
    {"grpo_passk", "group"},
    {"gdpo", "group"},
    {"opo", "group"},
    {"rloo", "rloo"},
    {"rloo_vectorized", "rloo"},
    {"remax", "remax"},
    {"reinforce", "reinforce_pp"},
    {"reinforce_baseline", "reinforce_pp"},
    {"reinforce_plus_plus", "reinforce_pp"},
    {"reinforce_plus_plus_baseline", "reinforce_pp"},
  };
  return ours;
}

} // namespace

LayoutPart training_part(const ForeignReader& reader, ForeignKeys keys,
                         std::uint32_t first, std::uint32_t count,
                         TrainDegrees degrees) {
  const auto dp = divided(reader, keys, count, degrees.tp * degrees.pp,
                          "devices of this model");
  LayoutPart part{.first = first, .count = count};
  part.strategy = {.dp = dp,
                   .pp = degrees.pp,
                   .tp = degrees.tp,
                   .zero = zero_of(degrees.zero, dp)};
  return part;
}

LayoutPart frozen_part(LayoutPart trained) {
  if (trained.strategy.zero != Zero::z3)
    trained.strategy.zero = Zero::none;
  trained.offload_optimizer = false;
  return trained;
}

LayoutPart generation_part(const ForeignReader& reader, ForeignKeys keys,
                           std::uint32_t first, std::uint32_t count,
                           std::uint32_t tp, std::uint32_t pp) {
  const auto dp
    = divided(reader, keys, count, tp * pp, "devices that generate");
  LayoutPart part{.first = first, .count = count};
  part.strategy = {.dp = dp, .pp = pp, .tp = tp};
  return part;
}

void set_sizes(Recipe& recipe, const StepSizes& sizes) {
  auto& work = recipe.work;
  const auto samples = sizes.prompts * sizes.samples_a_prompt;
  const auto updates
    = sizes.samples_an_update > 0
        ? std::max<std::int64_t>(1, samples / sizes.samples_an_update)
        : 1;
  work.set("data.batch_size", std::to_string(sizes.prompts));
  work.set("data.max_prompt_tokens", std::to_string(sizes.max_prompt));
  work.set("rollout.n", std::to_string(sizes.samples_a_prompt));
  work.set("rollout.max_new_tokens", std::to_string(sizes.max_response));
  work.set("algorithm.mini_batches", std::to_string(updates));
}

void set_estimator(Recipe& recipe, const std::string& word,
                   const Place& place) {
  const auto found = estimators().find(word);
  const auto ours = found == estimators().end() ? "group" : found->second;
  if (found == estimators().end())
    recipe.notes.push_back(
      {place, fmt::format("estimator '{}' is not ours: its step is planned as "
                          "that of grpo",
                          word)});
  recipe.work.workflow = ours == "gae" ? "ppo" : "grpo";
  recipe.work.set("algorithm.advantage", ours);
}

void set_kl(Recipe& recipe, const std::string& where) {
  recipe.work.set("algorithm.kl_in", where);
}

void set_lag(Recipe& recipe, std::int64_t steps) {
  constexpr std::int64_t most = max_plan_lag;
  recipe.layout.lag
    = static_cast<std::uint32_t>(std::clamp<std::int64_t>(steps, 0, most));
  if (steps > most)
    recipe.notes.push_back(
      {{},
       fmt::format("a generation that lags {} steps is planned as one that "
                   "lags {}, the most that plans have",
                   steps, most)});
}

void set_model(Recipe& recipe, const std::string& role,
               const std::string& name) {
  recipe.work.models[role] = name;
}

} // namespace troupe::plans
