#include "plans/check/too_full.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::plans::internal {

std::string gigabytes(std::uint64_t bytes) {
  return fmt::format("{:.4g} GB", static_cast<double>(bytes) / 1e9);
}

namespace {

std::string got_of(const DevicePeak& peak) {
  const auto servers
    = peak.server_bytes == 0
        ? ""
        : fmt::format(" and {} servers (rollout.server_command)",
                      gigabytes(peak.server_bytes));
  return fmt::format("{}, {} of it weights, gradients and optimizer{}",
                     gigabytes(peak.peak_bytes),
                     gigabytes(peak.resident_bytes - peak.server_bytes),
                     servers);
}

} // namespace

void TooFull::add(const DeviceMemory& memory, const DevicePeak& peak,
                  std::uint64_t limit,
                  const std::function<std::string()>& hint) {
  if (peak.peak_bytes <= limit)
    return;
  // neighbours are most often alike
  const auto seen
    = std::find_if(seen_.rbegin(), seen_.rend(), [&](const Seen& other) {
        return groups_[other.group].limit == limit
               && other.memory.holds_the_same(memory);
      });
  const auto number
    = seen == seen_.rend() ? group_of(peak, limit, hint()) : seen->group;
  if (seen == seen_.rend())
    seen_.push_back({memory, number});
  auto& group = groups_[number];
  group.devices.push_back(peak.device);
  if (!peak.kind.empty() && std::ranges::count(group.kinds, peak.kind) == 0)
    group.kinds.push_back(peak.kind);
}

/// Returns the group of this text, a new one if there is none.
std::size_t TooFull::group_of(const DevicePeak& peak, std::uint64_t limit,
                              std::string hint) {
  Group group{.path
              = peak.at_task.empty() ? "cluster" : "calls." + peak.at_task,
              .got = got_of(peak),
              .hint = std::move(hint),
              .limit = limit};
  auto same = std::ranges::find_if(groups_, [&](const Group& other) {
    return other.path == group.path && other.got == group.got
           && other.hint == group.hint && other.limit == group.limit;
  });
  if (same == groups_.end())
    same = groups_.insert(groups_.end(), std::move(group));
  return static_cast<std::size_t>(same - groups_.begin());
}

std::vector<PlanMistake> TooFull::mistakes() const {
  std::vector<PlanMistake> all;
  for (const auto& group : groups_)
    all.push_back(
      {group.path,
       expectation(fmt::format("at most {} on {} {}{}{}",
                               gigabytes(group.limit),
                               group.devices.size() == 1 ? "device" : "devices",
                               print_devices(group.devices),
                               group.kinds.empty() ? "" : " of ",
                               fmt::join(group.kinds, " and ")),
                   group.got, group.hint)});
  return all;
}

} // namespace troupe::plans::internal
