#include "plans/device_order.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace troupe::plans {

namespace {

/// Of a line, what the i-th of n equal parts and the k-th of m have in common,
/// times n m.
std::uint64_t common_part(std::uint64_t i, std::uint64_t n, std::uint64_t k,
                          std::uint64_t m) {
  const auto begin = std::max(i * m, k * n);
  const auto end = std::min((i + 1) * m, (k + 1) * n);
  return end > begin ? end - begin : 0;
}

/// Else parts are of unequal sizes, and what degrees say is not exact.
bool parts_nest(const Strategy& a, const Strategy& b) {
  const auto divide
    = [](std::uint32_t n, std::uint32_t m) { return n % m == 0 || m % n == 0; };
  return divide(a.pp, b.pp) && divide(a.tp, b.tp);
}

/// What coordinates of two strategies have in common, in parts of a model that
/// are the same for all pairs.
class CommonBytes {
public:
  CommonBytes(const Strategy& source, const Strategy& target)
    : source_(source),
      target_(target),
      // of other cuts each share of a layer has a bit of each
      by_data_(source.tp == target.tp && source.zero == Zero::z3
               && target.zero == Zero::z3) {}

  std::uint64_t operator()(std::uint32_t source, std::uint32_t target) const {
    const auto from = coordinate_of(source_, source);
    const auto to = coordinate_of(target_, target);
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
      if (rank >= index_of_.size())
        index_of_.resize(rank + 1, nowhere);
      index_of_[rank] = i;
    }
  }

  /// Of the device, were it at `position`.
  std::uint64_t kept(Rank device, std::size_t position) const {
    if (device.value >= index_of_.size() || index_of_[device.value] == nowhere)
      return 0;
    return common_(index_of_[device.value],
                   static_cast<std::uint32_t>(position));
  }

  std::uint64_t kept(const std::vector<Rank>& order) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
      sum += kept(order[i], i);
    return sum;
  }

  /// Workers of each tensor group, added up.
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

  /// Gives positions `begin` to `end` to the devices that are there, in
  /// ascending order: whoever keeps most first.
  void trade(std::vector<Rank>& order, std::size_t begin,
             std::size_t end) const {
    using Wish = std::tuple<std::uint64_t, Rank, std::size_t>;
    const std::vector<Rank> here(
      order.begin() + static_cast<std::ptrdiff_t>(begin),
      order.begin() + static_cast<std::ptrdiff_t>(end));
    std::vector<Wish> wishes;
    wishes.reserve(here.size() * here.size());
    for (const auto device : here)
      for (auto position = begin; position < end; ++position)
        wishes.emplace_back(kept(device, position), device, position);
    std::ranges::sort(wishes, [](const Wish& a, const Wish& b) {
      return std::tuple(std::get<0>(b), std::get<1>(a), std::get<2>(a))
             < std::tuple(std::get<0>(a), std::get<1>(b), std::get<2>(b));
    });
    std::vector<bool> taken(here.size()), placed(here.size());
    for (const auto& [bytes, device, position] : wishes) {
      const auto k = static_cast<std::size_t>(
        std::ranges::lower_bound(here, device) - here.begin());
      if (placed[k] || taken[position - begin])
        continue;
      placed[k] = true;
      taken[position - begin] = true;
      order[position] = device;
    }
  }

private:
  CommonBytes common_;
  const Cluster& cluster_;
  std::size_t tensor_peers_;
  static constexpr auto nowhere = ~std::uint32_t{0};
  std::vector<std::uint32_t> index_of_; ///< by rank, in the source's mesh
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
