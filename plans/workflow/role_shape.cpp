#include "plans/workflow/role_shape.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::plans {

namespace {

[[noreturn]] void refuse_targets(const Settings& settings, const Role& role,
                                 const std::vector<std::string>& known,
                                 const std::string& got) {
  const auto key = "models." + role.name + ".lora.targets";
  throw ConfigError(
    {.place = place_of(settings, key),
     .path = key,
     .expected
     = known.empty()
         ? "no adapters for this family, which stores its matrices "
           "together in one tensor"
         : fmt::format("some of {}, or all-linear", fmt::join(known, ", ")),
     .got = got,
     .hint = known.empty() ? "models." + role.name + ".lora.rank=0"
                           : key + "=[all-linear]"});
}

/// Returns the adapted matrices in the model's order.
std::vector<std::string> targets_of(const ModelShape& shape, const Role& role,
                                    const Settings& settings,
                                    const std::vector<std::string>& given) {
  const auto known = lora_targets(shape);
  if (known.empty())
    refuse_targets(settings, role, known,
                   fmt::format("{}", fmt::join(given, ", ")));
  if (std::ranges::find(given, all_linear) != given.end())
    return known;
  for (const auto& target : given)
    if (std::ranges::find(known, target) == known.end())
      refuse_targets(settings, role, known, "'" + target + "'");
  if (given.empty())
    refuse_targets(settings, role, known, "none");
  std::vector<std::string> ordered;
  std::ranges::copy_if(known, std::back_inserter(ordered),
                       [&](const auto& word) {
                         return std::ranges::find(given, word) != given.end();
                       });
  return ordered;
}

/// Refuses settings about experts for a model that has none of what they need.
void check_experts(const ModelShape& shape, const Role& role,
                   const Settings& settings) {
  const auto refuse = [&](const std::string& key, const std::string& value,
                          const std::string& expected, const std::string& off) {
    throw ConfigError(
      {.place = place_of(settings, key),
       .path = key,
       .expected = expected,
       .got = fmt::format("{} with a model of family {}", value, shape.family),
       .hint = key + "=" + off});
  };
  if (role.name == "actor" && settings.algorithm.loss.routing_replay
      && !shape.experts.exist())
    refuse("algorithm.routing_replay", "'true'",
           "false for an actor without experts", "false");
  const auto model = settings.models.find(role.name);
  if (model == settings.models.end())
    return;
  const OptimizerSettings& optimizer = model->second.optimizer;
  const std::string path = "models." + role.name + ".optimizer.";
  if (optimizer.router_bias_rate > 0 && !shape.experts.router.corrected)
    refuse(path + "router_bias_rate",
           fmt::format("'{}'", optimizer.router_bias_rate),
           "0 for a model whose routers have no corrections", "0");
  if (optimizer.router_aux_loss_coef > 0 && !shape.experts.exist())
    refuse(path + "router_aux_loss_coef",
           fmt::format("'{}'", optimizer.router_aux_loss_coef),
           "0 for a model without experts", "0");
}

} // namespace

LoraSettings lora_of(const Settings& settings, const Role& role) {
  const auto& name = role.ema ? role.ema->role : role.name;
  const auto model = settings.models.find(name);
  if (model == settings.models.end() || !role.changes())
    return {};
  return model->second.lora;
}

ModelShape role_shape(ModelShape read, const Role& role,
                      const Settings& settings) {
  read.scalar_head = role.scalar_head;
  check_experts(read, role, settings);
  const auto lora = lora_of(settings, role);
  if (lora.rank > 0)
    read.lora = {.rank = lora.rank,
                 .alpha = lora.alpha,
                 .targets = targets_of(read, role, settings, lora.targets)};
  return read;
}

} // namespace troupe::plans
