#include "plans/search/infeasible.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace troupe::plans {

namespace {

constexpr std::uint32_t most_devices = 4096;

bool has_all_options(const SearchSpace& space) {
  return std::ranges::none_of(
    space.calls(), [](const auto& call) { return call.options.empty(); });
}

bool some_plan_fits(const PlanProblem& problem, SpaceLimits limits) {
  const CostModel costs(problem);
  const SearchSpace space(problem, costs, std::move(limits));
  if (!has_all_options(space))
    return false;
  PointCost cost(space, {});
  SpacePoint point;
  return Walk(space, cost, {}, 1).find_start(point);
}

/// Returns the fewest devices, doubling, on which a plan fits; 0 if none do.
std::uint32_t devices_that_fit(const PlanProblem& problem) {
  auto larger = problem;
  auto& cluster = larger.cluster;
  while (2 * cluster.num_devices() <= most_devices) {
    const bool room_in_node
      = cluster.nodes == 1
        && cluster.devices_per_node < problem.hardware.devices_per_node;
    (room_in_node ? cluster.devices_per_node : cluster.nodes) *= 2;
    if (some_plan_fits(larger, {}))
      return cluster.num_devices();
  }
  return 0;
}

bool some_plan_fits_recomputed(const PlanProblem& problem) {
  if (problem.sizes.recompute_activations)
    return false;
  auto recomputed = problem;
  recomputed.sizes.recompute_activations = true;
  return some_plan_fits(recomputed, {});
}

/// Suggests what would fit. Devices of one host share its memory, so more of
/// them do not help a run.
std::string what_would_fit(const PlanProblem& problem) {
  if (some_plan_fits_recomputed(problem))
    return "algorithm.recompute=true";
  auto fewer = problem;
  fewer.sizes.samples_per_step
    = std::max(1u, problem.sizes.samples_per_step / 4);
  const bool smaller_batch_helps
    = fewer.sizes.samples_per_step < problem.sizes.samples_per_step
      && fewer.sizes.samples_per_step >= fewer.sizes.mini_batches
      && some_plan_fits(fewer, {});
  const std::string batch
    = smaller_batch_helps ? "a smaller data.batch_size" : "";
  const auto devices = problem.for_run ? 0 : devices_that_fit(problem);
  if (devices == 0)
    return batch.empty() ? "smaller models" : batch;
  return fmt::format("{}{}{} devices", batch, batch.empty() ? "" : " or ",
                     devices);
}

std::string no_fit_line(const SearchSpace& space, const SpacePeak& peak,
                        std::string_view the_smallest) {
  const auto& problem = space.problem();
  const auto missing = space.missing_bytes(peak.device);
  return fmt::format(
    "no plan fits: {} is {:.1f} GB of {:.1f} on device {} in {}; try {}",
    the_smallest, double(peak.bytes - missing) / 1e9,
    double(space.memory_bytes() - missing) / 1e9, peak.device,
    space.calls()[peak.call].call->name, what_would_fit(problem));
}

} // namespace

std::optional<std::string> why_a_call_does_not_fit(const SearchSpace& space) {
  const auto& calls = space.calls();
  SpacePeak worst;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i].options.empty())
      continue;
    if (calls[i].smallest_bytes == ~std::uint64_t{0})
      return fmt::format(
        "no plan fits: {} has fewer samples than devices in every strategy; "
        "try a larger data.batch_size",
        calls[i].call->name);
    if (calls[i].smallest_bytes > worst.bytes)
      worst = {.bytes = calls[i].smallest_bytes,
               .device = calls[i].smallest_at,
               .call = i};
  }
  if (worst.bytes == 0)
    return std::nullopt;
  return no_fit_line(space, worst, "the smallest peak");
}

std::string why_calls_do_not_fit(const SearchSpace& space,
                                 const SpacePoint& point) {
  return no_fit_line(space, peak_of(space, point), "the smallest peak found");
}

} // namespace troupe::plans
