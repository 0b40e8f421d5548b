#include "plans/weights/device_order.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

namespace troupe::plans {

namespace {

/// Returns the overlap of the i-th of n and the k-th of m equal parts of a
/// line, times n m.
std::uint64_t common_part(std::uint64_t i, std::uint64_t n, std::uint64_t k,
                          std::uint64_t m) {
  const auto begin = std::max(i * m, k * n);
  const auto end = std::min((i + 1) * m, (k + 1) * n);
  return end > begin ? end - begin : 0;
}

/// Returns whether the parts of two strategies nest; otherwise they are of
/// unequal sizes, and degrees alone do not give the exact overlap.
bool parts_nest(const Strategy& a, const Strategy& b) {
  const auto divide
    = [](std::uint32_t n, std::uint32_t m) { return n % m == 0 || m % n == 0; };
  return divide(a.pp, b.pp) && divide(a.tp, b.tp);
}

/// Overlap of coordinates of two strategies, in a unit (a part of the model)
/// that is the same for all pairs.
class CommonBytes {
public:
  CommonBytes(const Strategy& source, const Strategy& target)
    : source_(source),
      target_(target),
      // with different cuts each share of a layer overlaps each share a little
      by_data_(source.tp == target.tp && source.zero == Zero::z3
               && target.zero == Zero::z3) {}

  std::uint64_t operator()(const Coordinate& from, const Coordinate& to) const {
    return common_part(from.pp, source_.pp, to.pp, target_.pp)
           * common_part(from.tp, source_.tp, to.tp, target_.tp)
           * (by_data_ ? common_part(from.dp, source_.dp, to.dp, target_.dp)
                       : 1);
  }

private:
  Strategy source_;
  Strategy target_;
  bool by_data_;
};

/// Orders of the devices of one target mesh.
class DeviceTrade {
public:
  DeviceTrade(const Placement& source, const Placement& target,
              const Cluster& cluster)
    : common_(source.strategy, target.strategy),
      cluster_(cluster),
      tensor_peers_(target.strategy.tp) {
    for (std::uint32_t i = 0; i < source.devices.size(); ++i) {
      const auto rank = source.devices[i].value;
      if (rank >= from_.size())
        from_.resize(rank + 1);
      from_[rank] = coordinate_of(source.strategy, i);
    }
    for (std::uint32_t i = 0; i < target.devices.size(); ++i)
      to_.push_back(coordinate_of(target.strategy, i));
  }

  /// Returns what `device` would keep at `position`.
  std::uint64_t kept(Rank device, std::size_t position) const {
    return is_source(device) ? common_(*from_[device.value], to_[position]) : 0;
  }
  bool is_source(Rank device) const {
    return device.value < from_.size() && from_[device.value];
  }

  std::uint64_t kept(const std::vector<Rank>& order) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
      sum += kept(order[i], i);
    return sum;
  }

  /// Returns the sum over tensor groups of their number of workers.
  std::size_t spread(const std::vector<Rank>& order) const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < order.size(); i += tensor_peers_) {
      std::set<WorkerId> workers;
      for (std::size_t k = i; k < i + tensor_peers_; ++k)
        workers.insert(cluster_.worker_of(order[k]));
      sum += workers.size();
    }
    return sum;
  }

  /// Reassigns positions `begin` to `end` among their devices, in ascending
  /// order: the device that keeps most is placed first, those that keep nothing
  /// fill the remaining positions.
  void trade(std::vector<Rank>& order, std::size_t begin,
             std::size_t end) const {
    using Wish = std::tuple<std::uint64_t, Rank, std::size_t>;
    const std::vector<Rank> here(
      order.begin() + static_cast<std::ptrdiff_t>(begin),
      order.begin() + static_cast<std::ptrdiff_t>(end));
    std::vector<Wish> wishes;
    for (const auto device : here)
      for (auto position = begin; position < end; ++position)
        if (const auto bytes = kept(device, position); bytes > 0)
          wishes.emplace_back(bytes, device, position);
    std::ranges::sort(wishes, [](const Wish& a, const Wish& b) {
      return std::tuple(std::get<0>(b), std::get<1>(a), std::get<2>(a))
             < std::tuple(std::get<0>(a), std::get<1>(b), std::get<2>(b));
    });
    std::vector<bool> taken(here.size()), placed(here.size());
    const auto place = [&](std::size_t device, std::size_t position) {
      if (placed[device] || taken[position])
        return;
      placed[device] = taken[position] = true;
      order[begin + position] = here[device];
    };
    for (const auto& [bytes, device, position] : wishes)
      place(static_cast<std::size_t>(std::ranges::lower_bound(here, device)
                                     - here.begin()),
            position - begin);
    for (std::size_t device = 0, position = 0; device < here.size(); ++device)
      for (; position < here.size() && !placed[device]; ++position)
        place(device, position);
  }

private:
  CommonBytes common_;
  const Cluster& cluster_;
  std::size_t tensor_peers_;
  std::vector<std::optional<Coordinate>> from_; ///< by rank, in the source
  std::vector<Coordinate> to_;                  ///< by position in the target
};

} // namespace

std::vector<Rank> order_devices(const Placement& source,
                                const Placement& target,
                                const Cluster& cluster) {
  auto ascending = target.devices;
  std::ranges::sort(ascending);
  if (source.devices.size() != source.strategy.num_devices()
      || ascending.size() != target.strategy.num_devices()
      || !parts_nest(source.strategy, target.strategy))
    return ascending;
  const DeviceTrade devices(source, target, cluster);
  if (std::ranges::none_of(
        ascending, [&](Rank device) { return devices.is_source(device); }))
    return ascending;
  auto order = ascending;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size()
           && cluster.node_of(ascending[end])
                == cluster.node_of(ascending[begin]))
      ++end;
    devices.trade(order, begin, end);
  }
  const bool better = devices.kept(order) > devices.kept(ascending)
                      && devices.spread(order) <= devices.spread(ascending);
  return better ? order : ascending;
}

} // namespace troupe::plans
