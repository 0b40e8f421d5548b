#include "plans/foreign/imported.hpp"

#include "config/yaml/overrides.hpp"
#include "plans/workflow/workflow.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

/// Engines and published trainers keep weights in 16 bits.
constexpr double weight_bytes_each = 2;
/// Share of a device that other systems leave free: the largest default of
/// their engines is 0.95.
constexpr const char* least_free_share = "0.05";
/// Least cache of an engine: a share that its weights alone fill would not
/// start at all.
constexpr double least_cache_bytes = 1e9;

std::string model_path(const ImportFacts& facts, const std::string& name) {
  const auto folder = facts.folders.find(name);
  return folder == facts.folders.end() ? name : folder->second;
}

/// Returns our settings as "key=value", section by section.
std::vector<std::string> words_of(const Recipe& recipe,
                                  const ImportFacts& facts) {
  const auto& work = recipe.work;
  std::vector<std::string> words;
  const auto add = [&](const std::string& key, const std::string& value) {
    words.push_back(key + "=" + value);
  };
  const auto copy_section = [&](const std::string& section) {
    for (const auto& [key, value] : work.settings)
      if (key.starts_with(section))
        add(key, value);
  };
  add("run.name", work.get("run.name").empty()
                    ? std::string("from_") + to_string(recipe.system)
                    : work.get("run.name"));
  add("run.steps",
      work.get("run.steps").empty() ? "100" : work.get("run.steps"));
  add("cluster.nodes", std::to_string(work.nodes));
  add("cluster.devices_per_node", std::to_string(work.devices_per_node));
  add("cluster.device", "gpu");
  add("cluster.device_memory_reserve", least_free_share);
  add("workflow", work.workflow);
  for (const auto& [role, name] : work.models)
    add("models." + role + ".path", model_path(facts, name));
  copy_section("models.");
  add("data.train", "prompts.jsonl");
  copy_section("data.");
  copy_section("rollout.");
  if (const auto bytes = cache_bytes(recipe, facts); bytes > 0)
    add("rollout.kv_cache_gb", fmt::format("{:.1f}", bytes / 1e9));
  copy_section("algorithm.");
  copy_section("reward.");
  return words;
}

const char* fate_text(Fate fate) {
  switch (fate) {
  case Fate::understood:
    return "->";
  case Fate::irrelevant:
    return "no effect on time or memory";
  case Fate::not_modelled:
    return "NOT IN THE PLAN:";
  case Fate::unknown:
    return "NOT UNDERSTOOD";
  }
  return "";
}

/// Shortens a value such as a chat template to what a line has room for.
std::string short_value(const std::string& value) {
  constexpr std::size_t most = 36;
  auto text = value.substr(0, value.find('\n'));
  if (text.size() > most || text.size() < value.size())
    text = text.substr(0, most - 3) + "...";
  return text;
}

} // namespace

double cache_bytes(const Recipe& recipe, const ImportFacts& facts) {
  const auto& layout = recipe.layout;
  if (layout.engine_share <= 0)
    return 0;
  double weights = 0;
  const auto model = recipe.work.models.find("actor");
  if (model != recipe.work.models.end())
    if (const auto shape = facts.shapes.find(model->second);
        shape != facts.shapes.end())
      weights = weight_bytes_each
                * static_cast<double>(num_parameters(shape->second));
  const auto& strategy = layout.generation.strategy;
  return std::max(least_cache_bytes, layout.engine_share * facts.device_bytes
                                       - weights / (strategy.tp * strategy.pp));
}

std::string print_imported(const Recipe& recipe, const ImportFacts& facts) {
  auto root = parse_overrides(words_of(recipe, facts));
  const auto settings = parse_settings(print_yaml(root), "imported settings");
  const auto workflow = make_workflow(settings);
  const auto& work = recipe.work;
  const auto plan = plan_of(recipe.layout, workflow,
                            {.nodes = work.nodes,
                             .devices_per_node = work.devices_per_node,
                             .workers_per_node = work.devices_per_node});
  root.entries.push_back({"plan", parse_yaml(print(plan), "plan")});
  return print_yaml(root);
}

std::string print_account(const Recipe& recipe, bool all) {
  std::string text;
  std::size_t irrelevant = 0;
  for (const auto& [value, fate, meaning] : recipe.values) {
    irrelevant += fate == Fate::irrelevant;
    if (fate == Fate::irrelevant && !all)
      continue;
    text += fmt::format("{}{}={} {}{}{}\n", to_string(value.place), value.key,
                        short_value(value.value), fate_text(fate),
                        meaning.empty() ? "" : " ", meaning);
  }
  for (const auto& one : recipe.assumed)
    text
      += fmt::format("assumed ({}'s default): {}={} -> {}\n",
                     to_string(recipe.system), one.key, one.value, one.meaning);
  for (const auto& note : recipe.notes)
    text += fmt::format("note: {}{}\n", to_string(note.place), note.text);
  const auto count = [&](Fate fate) {
    return std::ranges::count(recipe.values, fate, &ReadValue::fate);
  };
  return text
         + fmt::format("{} values: {} understood, {} without effect on time or "
                       "memory{}, {} not in the plan, {} not understood\n",
                       recipe.values.size(), count(Fate::understood),
                       irrelevant, all ? "" : " (not listed: --all)",
                       count(Fate::not_modelled), count(Fate::unknown));
}

} // namespace troupe::plans
