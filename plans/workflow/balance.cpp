#include "plans/workflow/balance.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>

namespace troupe::plans {

namespace {

struct Item {
  std::uint32_t index;
  std::uint64_t cost;
  auto operator<=>(const Item&) const = default;
};

/// One list of the partition being built.
struct Bin {
  std::uint64_t cost = 0;
  std::vector<Item> items = {};

  void merge(const Bin& other) {
    cost += other.cost;
    items.insert(items.end(), other.items.begin(), other.items.end());
  }
  /// Orders by cost, then length, then items: a total order, so that ties are
  /// broken the same way everywhere.
  bool operator<(const Bin& other) const {
    const auto size = items.size();
    const auto other_size = other.items.size();
    return std::tie(cost, size, items)
           < std::tie(other.cost, other_size, other.items);
  }
};

bool larger_bin(const Bin& a, const Bin& b) {
  return b < a;
}

/// A partial partition; the differencing step merges the two with the largest
/// spread, largest bin onto smallest. Bins without items are counted, not kept:
/// of many parts most are empty until the last steps.
struct Partition {
  std::vector<Bin> bins; ///< those with items, by falling cost
  std::size_t parts = 0; ///< with the empty bins, which come last

  std::uint64_t spread() const {
    return bins.front().cost - (bins.size() < parts ? 0 : bins.back().cost);
  }
  void merge(Partition&& other) {
    // the other's largest bins go where this one has its smallest or none
    const auto num_free = parts - bins.size();
    const auto taken = std::min(num_free, other.bins.size());
    for (auto i = taken; i < other.bins.size(); ++i)
      bins[parts - 1 - i].merge(other.bins[i]);
    if (taken < other.bins.size())
      std::ranges::sort(bins, larger_bin);
    const auto old_end = static_cast<std::ptrdiff_t>(bins.size());
    bins.insert(bins.end(), std::make_move_iterator(other.bins.begin()),
                std::make_move_iterator(other.bins.begin()
                                        + static_cast<std::ptrdiff_t>(taken)));
    std::ranges::inplace_merge(bins, bins.begin() + old_end, larger_bin);
  }
  /// Orders a heap so that the largest spread is taken first.
  bool operator<(const Partition& other) const {
    if (spread() != other.spread())
      return spread() < other.spread();
    return bins.front() < other.bins.front();
  }
};

Partition partition_of(std::span<const Item> items, std::uint32_t parts) {
  Partition partition{.bins = {}, .parts = parts};
  for (const Item& item : items)
    partition.bins.push_back({item.cost, {item}});
  std::ranges::sort(partition.bins, larger_bin);
  return partition;
}

/// Returns items by rising cost; items of cost 0 pad their number to a
/// multiple.
std::vector<Item> sorted_items(std::span<const std::uint64_t> costs,
                               std::uint32_t multiple) {
  std::vector<Item> items;
  for (std::uint32_t i = 0; i < costs.size(); ++i)
    items.push_back({i, costs[i]});
  while (items.size() % multiple != 0)
    items.push_back({static_cast<std::uint32_t>(items.size()), 0});
  std::ranges::sort(items, {}, [](const Item& item) {
    return std::tuple{item.cost, item.index};
  });
  return items;
}

Partition difference(std::vector<Partition> heap) {
  std::make_heap(heap.begin(), heap.end());
  while (heap.size() > 1) {
    std::pop_heap(heap.begin(), heap.end());
    auto first = std::move(heap.back());
    heap.pop_back();
    std::pop_heap(heap.begin(), heap.end());
    first.merge(std::move(heap.back()));
    heap.back() = std::move(first);
    std::push_heap(heap.begin(), heap.end());
  }
  return std::move(heap.front());
}

} // namespace

std::vector<SampleRange> mini_batches(std::uint32_t num_samples,
                                      std::uint32_t count,
                                      std::uint32_t group_size) {
  TROUPE_CHECK(count >= 1 && group_size >= 1, "at least one of each");
  TROUPE_CHECK(num_samples % group_size == 0, "a group is not whole");
  const auto groups = num_samples / group_size;
  std::vector<SampleRange> ranges;
  std::uint32_t first = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto size = (groups / count + (i < groups % count)) * group_size;
    ranges.push_back({SampleId{first}, size});
    first += size;
  }
  return ranges;
}

std::vector<std::vector<std::uint32_t>>
balance(std::span<const std::uint64_t> costs, std::uint32_t parts,
        bool equal_count) {
  TROUPE_CHECK(parts >= 1, "at least one part");
  std::vector<std::vector<std::uint32_t>> lists(parts);
  if (costs.empty())
    return lists;
  const std::size_t step = equal_count ? parts : 1;
  const auto items = sorted_items(costs, static_cast<std::uint32_t>(step));
  std::vector<Partition> heap;
  for (std::size_t i = 0; i < items.size(); i += step)
    heap.push_back(partition_of(std::span(items).subspan(i, step), parts));
  const auto partition = difference(std::move(heap));
  for (std::size_t i = 0; i < partition.bins.size(); ++i) {
    for (const auto& item : partition.bins[i].items)
      if (item.index < costs.size())
        lists[i].push_back(item.index);
    std::ranges::sort(lists[i]);
  }
  return lists;
}

namespace {

/// Returns the fewest balanced lists, from `parts` on, that each fit `budget`.
std::vector<std::vector<std::uint32_t>>
fit_into(std::span<const std::uint64_t> costs, std::uint64_t budget,
         std::uint64_t parts) {
  if (costs.empty())
    return {};
  const auto fits = [&](const std::vector<std::uint32_t>& list) {
    std::uint64_t sum = 0;
    for (const auto i : list)
      sum += costs[i];
    return sum <= budget;
  };
  for (auto n = std::min<std::uint64_t>(parts, costs.size());; ++n) {
    auto lists = balance(costs, static_cast<std::uint32_t>(n), false);
    if (n == costs.size() || std::ranges::all_of(lists, fits))
      return lists;
  }
}

} // namespace

std::vector<std::vector<std::uint32_t>>
micro_batches(std::span<const std::uint64_t> tokens, std::uint64_t budget,
              std::uint32_t least_parts) {
  TROUPE_CHECK(budget >= 1, "a budget of at least one token");
  std::vector<std::vector<std::uint32_t>> lists;
  std::vector<std::uint32_t> fitting;
  std::vector<std::uint64_t> costs;
  for (std::uint32_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= budget) {
      lists.push_back({i});
      continue;
    }
    fitting.push_back(i);
    costs.push_back(tokens[i]);
  }
  const auto longer = [&](const auto& a, const auto& b) {
    return tokens[a.front()] > tokens[b.front()];
  };
  std::ranges::stable_sort(lists, longer);
  const auto alone = static_cast<std::uint32_t>(lists.size());
  const auto total
    = std::accumulate(costs.begin(), costs.end(), std::uint64_t{0});
  const auto wanted = least_parts > alone ? least_parts - alone : 1;
  const auto enough
    = std::max<std::uint64_t>((total + budget - 1) / budget, wanted);
  for (auto& list : fit_into(costs, budget, enough)) {
    for (auto& i : list)
      i = fitting[i];
    lists.push_back(std::move(list));
  }
  return lists;
}

} // namespace troupe::plans
