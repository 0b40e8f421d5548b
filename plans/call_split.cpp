#include "plans/call_split.hpp"

#include "plans/balance.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// Samples [first, end) balanced over `dp` by tokens, `unit` samples at a time.
std::vector<std::vector<SampleId>>
balanced(std::uint32_t first, std::uint32_t end, std::uint32_t dp,
         std::span<const std::uint32_t> tokens, std::uint32_t unit) {
  std::vector<std::uint64_t> costs((end - first + unit - 1) / unit, 0);
  for (std::uint32_t i = first; i < end; ++i)
    costs[(i - first) / unit] += tokens[i];
  std::vector<std::vector<SampleId>> parts(dp);
  const auto bins = balance(costs, dp, /*equal_count=*/false);
  for (std::uint32_t part = 0; part < dp; ++part) {
    for (const auto bin : bins[part]) {
      const auto begin = first + bin * unit;
      for (auto i = begin; i < std::min(begin + unit, end); ++i)
        parts[part].emplace_back(i);
    }
    std::ranges::sort(parts[part]);
  }
  return parts;
}

} // namespace

std::vector<Share> split_call(const Call& call, std::uint32_t dp,
                              std::span<const std::uint32_t> tokens,
                              std::uint32_t group_size,
                              std::uint32_t mini_batches) {
  const auto num_samples = static_cast<std::uint32_t>(tokens.size());
  const bool trains = call.kind == CallKind::train;
  const auto unit = call.kind == CallKind::generate ? group_size : 1;
  std::vector<Share> shares(dp);
  const auto ranges
    = plans::mini_batches(num_samples, trains ? mini_batches : 1, group_size);
  for (const auto& range : ranges) {
    auto parts = balanced(range.first.value, range.first.value + range.count,
                          dp, tokens, unit);
    for (std::uint32_t i = 0; i < dp; ++i)
      shares[i].push_back(std::move(parts[i]));
  }
  return shares;
}

} // namespace troupe::plans
