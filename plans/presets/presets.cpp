#include "plans/presets/presets.hpp"

#include "config/base/error.hpp"
#include "plans/plan/plan_names.hpp"
#include "plans/presets/preset_builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::plans {

namespace {

using internal::PresetBuilder;

template <class F>
void for_each_call(PresetBuilder& builder, F place) {
  for (const auto& call : builder.workflow().calls)
    if (call.kind != CallKind::function)
      place(call);
}

void build_single(PresetBuilder& builder) {
  for_each_call(builder, [&](const Call& call) {
    builder.place_data_parallel(call, {0, 1});
  });
}

void build_data_parallel(PresetBuilder& builder) {
  for_each_call(builder, [&](const Call& call) {
    builder.place_data_parallel(call, builder.everything());
  });
}

void build_deepspeed_chat(PresetBuilder& builder) {
  for_each_call(builder, [&](const Call& call) {
    if (call.kind == CallKind::generate)
      builder.place_gathered(call, builder.everything());
    else
      builder.place_sharded(call, builder.everything());
  });
}

void build_megatron(PresetBuilder& builder) {
  for_each_call(builder, [&](const Call& call) {
    builder.place_tensor(call, builder.everything(),
                         builder.cluster().devices_per_node);
  });
}

void build_verl(PresetBuilder& builder) {
  build_deepspeed_chat(builder);
  for (const auto& role : builder.workflow().roles)
    if (!role.trained)
      builder.plan().roles[role.name].offload_weights = true;
}

struct NamedPreset {
  const char* name;
  void (*build)(PresetBuilder&);
};

const std::vector<NamedPreset>& named_presets() {
  static const std::vector<NamedPreset> presets
    = {{"single", build_single},
       {"data_parallel", build_data_parallel},
       {"deepspeed_chat", build_deepspeed_chat},
       {"flattening", build_deepspeed_chat},
       {"openrlhf", internal::build_openrlhf},
       {"openrlhf_colocated", internal::build_openrlhf_colocated},
       {"interleaving", internal::build_interleaving},
       {"separation", internal::build_separation},
       {"megatron", build_megatron},
       {"real_heuristic", internal::build_real_heuristic},
       {"verl", build_verl},
       {"async", internal::build_async}};
  return presets;
}

} // namespace

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& one : named_presets())
      all.emplace_back(one.name);
    return all;
  }();
  return names;
}

bool is_preset(std::string_view name) {
  return std::ranges::find(preset_names(), name) != preset_names().end();
}

ExecutionPlan preset(const std::string& name, const Workflow& workflow,
                     const Cluster& cluster, const PresetFacts& facts) {
  for (const auto& one : named_presets()) {
    if (one.name != name)
      continue;
    PresetBuilder builder(name, workflow, cluster, facts);
    one.build(builder);
    for (const auto& call : workflow.calls)
      if (call.kind == CallKind::function)
        builder.plan().calls[call.name] = {};
    return std::move(builder.plan());
  }
  throw PlanError(
    {.place = {},
     .path = "plan",
     .expected = fmt::format("a preset ({})", fmt::join(preset_names(), ", ")),
     .got = "'" + name + "'",
     .hint = quoted_nearest(name, preset_names())});
}

} // namespace troupe::plans
