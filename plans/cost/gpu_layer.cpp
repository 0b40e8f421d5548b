#include "plans/cost/gpu_layer.hpp"

#include "plans/cost/layer_traffic.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::plans {

namespace {

constexpr double grouped_width = 8; ///< divides the widths of grouped products

struct LayerCounts {
  GpuCounts dense, grouped, single;
  std::int64_t launches_per_expert = 0;
};

LayerCounts counts_of(GpuPass pass) {
  const auto& all = gpu_counts;
  const auto& more = launches_per_expert;
  switch (pass) {
  case GpuPass::decode:
    return {all.decode_layer, all.expert_decode, all.single_decode,
            more.decode};
  case GpuPass::train:
    return {all.train_layer, all.expert_layer, all.single_experts, more.train};
  case GpuPass::prompt:
    return {gpu_prompt_counts.new_layer, gpu_prompt_counts.expert_layer,
            gpu_prompt_counts.single_experts, more.score};
  case GpuPass::score:
    break;
  }
  return {all.score_layer, all.expert_score, all.single_score, more.score};
}

GpuLayer with_launches(const GpuCounts& counts, double more) {
  return {static_cast<double>(counts.launches) + more, counts.traffic,
          counts.blocking_copies};
}

bool divides(double width) {
  return std::fmod(width, grouped_width) == 0;
}

/// Returns the rows of a device's experts.
double expert_rows(const internal::ModelWork& model, double tokens,
                   const Strategy& strategy) {
  return tokens * strategy.expert_group_dp() * model.experts.per_token
         / strategy.ep;
}

} // namespace

double expert_width(const internal::ModelWork& model,
                    const Strategy& strategy) {
  return model.experts.width / (strategy.ep > 1 ? 1 : strategy.tp);
}

bool has_groups(const internal::ModelWork& model, GpuPass pass,
                const Strategy& strategy, double compute_capability) {
  return multiplies_in_groups(compute_capability)
         && model.bytes.factor == bf16_bytes && divides(model.hidden)
         && divides(expert_width(model, strategy))
         && (pass != GpuPass::decode || strategy.ep <= 1);
}

GpuLayer gpu_layer(const internal::ModelWork& model, GpuPass pass,
                   double tokens, const Strategy& strategy,
                   double compute_capability) {
  const auto counts = counts_of(pass);
  if (model.experts.count == 0)
    return with_launches(counts.dense, 0);
  if (!has_groups(model, pass, strategy, compute_capability)) {
    const auto touched = model.device_experts(tokens, strategy);
    return with_launches(counts.single,
                         static_cast<double>(counts.launches_per_expert)
                           * (std::max(1.0, touched) - num_counted_experts));
  }
  const auto gathers
    = std::ceil(expert_rows(model, tokens, strategy) / grouped_rows);
  const auto launches
    = static_cast<double>(counts.grouped.launches - counts.dense.launches);
  auto layer
    = with_launches(counts.grouped, launches * (std::max(1.0, gathers) - 1));
  if (strategy.ep > 1) // the host assigns tokens
    layer.blocking_copies = counts.single.blocking_copies;
  return layer;
}

/// A pass that is full ends within a prompt, wherever that may be: its tokens
/// before that are new, those that the next pass feeds are not.
PromptPasses prompt_passes(double tokens, double length, double most) {
  PromptPasses made{.tokens = std::min(tokens, most)};
  made.count = tokens > 0 ? tokens / made.tokens : 0;
  made.later = made.count > 1 ? 1 - 1 / made.count : 0;
  made.continued = made.later
                   * (length <= made.tokens ? length / (2 * made.tokens)
                                            : 1 - made.tokens / (2 * length));
  return made;
}

GpuLayer prompt_layer(const internal::ModelWork& model,
                      const PromptPasses& passes, const Strategy& strategy,
                      double compute_capability) {
  const auto& [begun, continued, experts, single] = gpu_prompt_counts;
  auto layer = gpu_layer(model, GpuPass::prompt, passes.tokens, strategy,
                         compute_capability);
  layer.launches
    += passes.later * static_cast<double>(continued.launches - begun.launches);
  layer.traffic += passes.continued * (continued.traffic - begun.traffic);
  return layer;
}

bool is_captured(const internal::ModelWork& model, const Strategy& strategy,
                 double compute_capability) {
  return model.experts.count == 0
         || has_groups(model, GpuPass::decode, strategy, compute_capability);
}

bool runs_ahead(const internal::ModelWork& model, const Strategy& strategy,
                double compute_capability) {
  return strategy.pp <= 1 && is_captured(model, strategy, compute_capability);
}

} // namespace troupe::plans
