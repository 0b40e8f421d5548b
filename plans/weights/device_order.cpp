#include "plans/weights/device_order.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
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
/// unequal sizes or, with dealt experts, elsewhere, and degrees alone do not
/// give the exact overlap.
bool parts_nest(const Strategy& a, const Strategy& b) {
  if (a.ep > 1 || b.ep > 1)
    return false;
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

  /// Returns the coordinate without what does not matter.
  Coordinate part_of(Coordinate where) const {
    where.dp = by_data_ ? where.dp : 0;
    return where;
  }

private:
  Strategy source_;
  Strategy target_;
  bool by_data_;
};

/// Orders of the devices of one target mesh, node by node. Most nodes of a
/// large mesh hold and take the same coordinates as others: each kind is
/// ordered once.
class DeviceTrade {
public:
  DeviceTrade(const Placement& source, const Placement& target)
    : common_(source.strategy, target.strategy),
      target_(target.strategy) {
    for (std::uint32_t i = 0; i < source.devices.size(); ++i) {
      const auto rank = source.devices[i].value;
      if (rank >= from_.size())
        from_.resize(rank + 1);
      from_[rank] = common_.part_of(coordinate_of(source.strategy, i));
    }
  }

  bool is_source(Rank device) const {
    return device.value < from_.size() && from_[device.value];
  }

  /// Reassigns the positions from `begin` on among `here`, ascending devices of
  /// one node. Returns the gain in bytes that stay where they are.
  std::int64_t trade(std::span<Rank> here, std::size_t begin) {
    Kind kind;
    for (std::size_t i = 0; i < here.size(); ++i) {
      const auto position = static_cast<std::uint32_t>(begin + i);
      kind.push_back(is_source(here[i]) ? from_[here[i].value] : std::nullopt);
      kind.push_back(common_.part_of(coordinate_of(target_, position)));
    }
    const auto [found, added] = orders_.try_emplace(std::move(kind));
    if (added)
      found->second = order_of(found->first);
    const std::vector<Rank> ascending(here.begin(), here.end());
    for (std::size_t i = 0; i < here.size(); ++i)
      here[i] = ascending[found->second.devices[i]];
    return found->second.gain;
  }

private:
  /// By device of a node: the coordinate of the source that it holds, if any,
  /// and that of the target which it takes in ascending order.
  using Kind = std::vector<std::optional<Coordinate>>;
  struct Order {
    std::vector<std::size_t> devices = {}; ///< by position
    std::int64_t gain = 0;                 ///< over the ascending order
  };

  std::int64_t kept(const Kind& kind, std::size_t device,
                    std::size_t position) const {
    const auto& from = kind[2 * device];
    return from ? static_cast<std::int64_t>(
             common_(*from, *kind[2 * position + 1]))
                : 0;
  }

  /// Places the device that keeps most first; those that keep nothing fill the
  /// remaining positions.
  Order order_of(const Kind& kind) const {
    using Wish = std::tuple<std::int64_t, std::size_t, std::size_t>;
    const auto count = kind.size() / 2;
    std::vector<Wish> wishes;
    for (std::size_t device = 0; device < count; ++device)
      for (std::size_t position = 0; position < count; ++position)
        if (const auto bytes = kept(kind, device, position); bytes > 0)
          wishes.emplace_back(-bytes, device, position);
    std::ranges::sort(wishes);
    Order order{.devices = std::vector<std::size_t>(count)};
    std::vector<bool> taken(count), placed(count);
    const auto place = [&](std::size_t device, std::size_t position) {
      if (placed[device] || taken[position])
        return;
      placed[device] = taken[position] = true;
      order.devices[position] = device;
      order.gain += kept(kind, device, position);
    };
    for (const auto& [bytes, device, position] : wishes)
      place(device, position);
    for (std::size_t device = 0, position = 0; device < count; ++device)
      for (; position < count && !placed[device]; ++position)
        place(device, position);
    for (std::size_t i = 0; i < count; ++i)
      order.gain -= kept(kind, i, i);
    return order;
  }

  CommonBytes common_;
  Strategy target_;
  std::vector<std::optional<Coordinate>> from_; ///< by rank, in the source
  std::map<Kind, Order> orders_;
};

/// Returns the sum over tensor groups of their number of workers.
std::size_t spread(const std::vector<Rank>& order, std::size_t tensor_peers,
                   const Cluster& cluster) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < order.size(); i += tensor_peers) {
    std::set<WorkerId> workers;
    for (std::size_t k = i; k < i + tensor_peers; ++k)
      workers.insert(cluster.worker_of(order[k]));
    sum += workers.size();
  }
  return sum;
}

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
  DeviceTrade devices(source, target);
  if (std::ranges::none_of(
        ascending, [&](Rank device) { return devices.is_source(device); }))
    return ascending;
  auto order = ascending;
  std::int64_t gain = 0;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size()
           && cluster.node_of(ascending[end])
                == cluster.node_of(ascending[begin]))
      ++end;
    gain += devices.trade(std::span(order).subspan(begin, end - begin), begin);
  }
  if (gain <= 0)
    return ascending;
  // with one worker per node no tensor group gets another one
  const auto peers = std::size_t{target.strategy.tp};
  return cluster.workers_per_node == 1
             || spread(order, peers, cluster)
                  <= spread(ascending, peers, cluster)
           ? order
           : ascending;
}

} // namespace troupe::plans
