// Points of a search space: their plans and their memory.
#include "plans/search/search_space.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// Builds the plan of a point; `devices_of(first, count)` lists a mesh.
template <class DevicesOf>
ExecutionPlan plan_with(const SearchSpace& space, const SpacePoint& point,
                        const std::map<std::string, std::uint32_t>& lag,
                        DevicesOf devices_of) {
  ExecutionPlan plan{.cluster = space.problem().cluster};
  plan.lag = lag;
  for (const auto& call : space.problem().workflow.calls)
    plan.calls[call.name] = {};
  for (std::size_t i = 0; i < space.calls().size(); ++i) {
    const auto& call = space.calls()[i];
    const auto& option = call.options[point.options[i]];
    Placement place{.devices
                    = devices_of(point.positions[i], option.num_devices),
                    .strategy = option.strategy,
                    .micro_batches = option.micro_batches,
                    .chunks = option.chunks};
    const auto k = static_cast<std::size_t>(std::max(0, call.home));
    const auto& home = space.calls()[k].options[point.options[k]];
    if (call.reads_home()
        && SearchSpace::shares(option, point.positions[i], home,
                               point.positions[k]))
      place.strategy = home.strategy; // one replica: exactly equal
    plan.calls[call.call->name] = std::move(place);
    if (option.offload.offload_weights)
      plan.roles[call.call->role].offload_weights = true;
    if (option.offload.offload_optimizer)
      plan.roles[call.call->role].offload_optimizer = true;
  }
  return plan;
}

} // namespace

std::uint32_t SearchSpace::align(std::uint32_t from,
                                 std::uint32_t count) const {
  const auto node = problem_.cluster.devices_per_node;
  if (count >= node)
    return (from + node - 1) / node * node;
  const auto in_node = from % node;
  auto local = (in_node + count - 1) / count * count;
  if (node % count != 0 && in_node + count <= node)
    local = in_node + count == node ? in_node : local; // the end of a node
  return local + count <= node ? from - in_node + local : from - in_node + node;
}

Placement SearchSpace::placement(const CallOption& option,
                                 std::uint32_t position) const {
  Placement place{.strategy = option.strategy,
                  .micro_batches = option.micro_batches,
                  .chunks = option.chunks,
                  .responses = option.responses};
  for (std::uint32_t i = 0; i < option.num_devices; ++i)
    place.devices.emplace_back(position + i);
  return place;
}

ExecutionPlan plan_at(const SearchSpace& space, const SpacePoint& point,
                      const std::map<std::string, std::uint32_t>& lag) {
  return plan_with(space, point, lag,
                   [](std::uint32_t first, std::uint32_t count) {
                     std::vector<Rank> devices;
                     for (std::uint32_t i = 0; i < count; ++i)
                       devices.emplace_back(first + i);
                     return devices;
                   });
}

ExecutionPlan small_plan_at(const SearchSpace& space, const SpacePoint& point,
                            const std::map<std::string, std::uint32_t>& lag) {
  std::vector<std::uint32_t> ends;
  for (std::size_t i = 0; i < point.positions.size(); ++i) {
    const auto& option = space.calls()[i].options[point.options[i]];
    ends.push_back(point.positions[i]);
    ends.push_back(point.positions[i] + option.num_devices);
  }
  std::ranges::sort(ends);
  return plan_with(space, point, lag,
                   [&](std::uint32_t first, std::uint32_t count) {
                     std::vector<Rank> devices;
                     for (std::uint32_t i = 0; i + 1 < ends.size(); ++i)
                       if (ends[i] >= first && ends[i] < first + count
                           && ends[i] != ends[i + 1])
                         devices.emplace_back(i);
                     return devices;
                   });
}

namespace {

/// Returns the home of a call that shares its replica; else null.
const CallOption* shared_home(const SearchSpace& space, const SpacePoint& point,
                              std::size_t call) {
  const auto& one = space.calls()[call];
  if (!one.reads_home())
    return nullptr;
  const auto k = static_cast<std::size_t>(one.home);
  if (point.options[k] == not_chosen)
    return nullptr;
  const auto& home = space.calls()[k].options[point.options[k]];
  return SearchSpace::shares(one.options[point.options[call]],
                             point.positions[call], home, point.positions[k])
           ? &home
           : nullptr;
}

/// Returns whether a call before this one reads the same replica of their role.
bool shares_with_earlier(const SearchSpace& space, const SpacePoint& point,
                         std::size_t call) {
  const auto& calls = space.calls();
  const auto& option = calls[call].options[point.options[call]];
  for (std::size_t i = 0; i < call; ++i)
    if (calls[i].reads_home() && calls[i].home == calls[call].home
        && point.options[i] != not_chosen
        && SearchSpace::shares(option, point.positions[call],
                               calls[i].options[point.options[i]],
                               point.positions[i]))
      return true;
  return false;
}

/// Returns the bytes held on device `at`, plus those of the largest call.
SpacePeak peak_at(const SearchSpace& space, const SpacePoint& point,
                  std::uint32_t at) {
  const auto& calls = space.calls();
  SpacePeak peak{.device = at};
  auto held = space.missing_bytes(at);
  std::uint64_t most = 0, served = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (point.options[i] == not_chosen)
      continue;
    const auto& option = calls[i].options[point.options[i]];
    const auto first = point.positions[i];
    if (at < first || at >= first + option.num_devices)
      continue;
    const auto* home = shared_home(space, point, i);
    // frozen weights and windows of a replica count once, so that a point of
    // fewer calls never has a larger peak
    const bool is_counted = home
                            || (calls[i].reads_home() && option.static_bytes > 0
                                && shares_with_earlier(space, point, i));
    held += is_counted ? 0 : option.static_bytes;
    served
      = std::max(served, option.around.server_bytes); // calls share servers
    const bool finds_weights = home && !home->offload.offload_weights;
    const auto active
      = (finds_weights ? 0 : option.weight_bytes) + option.active_bytes;
    if (active > most) {
      most = active;
      peak.call = i;
    }
  }
  peak.bytes = held + served + most;
  return peak;
}

} // namespace

bool cut_into_chunks(const SearchSpace& space, SpacePoint& point, int count) {
  bool changed = false;
  for (std::size_t i = 0; i < point.options.size(); ++i) {
    const auto& options = space.calls()[i].options;
    const auto& whole = options[point.options[i]];
    const auto found = std::ranges::find_if(options, [&](const auto& option) {
      return option.chunks == count && option.num_devices == whole.num_devices
             && option.kinds == whole.kinds && option.strategy == whole.strategy
             && option.offload == whole.offload
             && option.active_bytes <= whole.active_bytes;
    });
    if (found == options.end())
      continue;
    point.options[i] = static_cast<std::uint32_t>(found - options.begin());
    changed = true;
  }
  return changed;
}

SpacePeak peak_of(const SearchSpace& space, const SpacePoint& point) {
  SpacePeak peak;
  const auto look_at = [&](std::uint32_t at) {
    const auto here = peak_at(space, point, at);
    if (here.bytes > peak.bytes)
      peak = here;
  };
  for (const auto at : point.positions) // the fullest is where a mesh begins,
    look_at(at);
  if (space.is_mixed()) // or where devices with less memory do
    for (const auto at : space.kind_starts())
      look_at(at);
  return peak;
}

std::uint64_t peak_bytes(const SearchSpace& space, const SpacePoint& point) {
  return peak_of(space, point).bytes;
}

double SearchSpace::master_s(const SpacePoint& point) const {
  double orders = 0; // requests to devices
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const auto& option = calls_[i].options[point.options[i]];
    orders += double(option.num_devices) * option.chunks;
  }
  return problem_.hardware.call_device_s * orders;
}

} // namespace troupe::plans
