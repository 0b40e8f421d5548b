#include "actors/calls/function_split.hpp"

#include <algorithm>
#include <map>

namespace troupe::actors {

namespace {

/// Returns the number of keys that each member holds, by unit of samples.
std::vector<std::vector<std::size_t>>
held_by_unit(std::span<const RowSource> sources,
             std::span<const WorkerId> workers, SampleId first,
             std::uint32_t num_units, std::uint32_t unit) {
  std::vector held(num_units, std::vector<std::size_t>(workers.size(), 0));
  for (const auto& source : sources) {
    const auto at = std::ranges::find(workers, source.holder, &WorkerId::value);
    if (at == workers.end())
      continue; // rows of the data set
    const auto member = static_cast<std::size_t>(at - workers.begin());
    for (const SampleId sample : source.samples)
      held[(sample.value - first.value) / unit][member] += source.keys.size();
  }
  return held;
}

} // namespace

std::vector<FunctionShare> split_function(plans::Scope scope,
                                          std::span<const RowSource> sources,
                                          std::span<const WorkerId> workers,
                                          plans::SampleRange range,
                                          std::uint32_t samples_per_group) {
  std::uint32_t unit = std::max(range.count, 1U);
  if (scope != plans::Scope::batch)
    unit = scope == plans::Scope::group ? samples_per_group : 1;
  const auto num_units = std::max((range.count + unit - 1) / unit, 1U);
  std::map<std::size_t, FunctionShare> shares;
  const auto held
    = held_by_unit(sources, workers, range.first, num_units, unit);
  for (std::uint32_t u = 0; u < num_units; ++u) {
    const auto member = static_cast<std::size_t>(
      std::ranges::max_element(held[u]) - held[u].begin());
    FunctionShare& share = shares[member];
    share.member = member;
    for (auto i = u * unit; i < std::min((u + 1) * unit, range.count); ++i)
      share.samples.emplace_back(range.first.value + i);
  }
  std::vector<FunctionShare> list;
  for (auto& [member, share] : shares)
    list.push_back(std::move(share));
  return list;
}

} // namespace troupe::actors
