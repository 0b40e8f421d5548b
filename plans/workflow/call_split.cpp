#include "plans/workflow/call_split.hpp"

#include "config/base/error.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// Balances samples [first, end) over `dp` by tokens, `unit` samples at a time.
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

SampleRange chunk_range(std::uint32_t num_samples, std::uint32_t group_size,
                        std::uint32_t chunk, std::uint32_t chunks) {
  TROUPE_CHECK(chunk < chunks && group_size > 0, "no such chunk");
  const std::uint64_t groups = (num_samples + group_size - 1) / group_size;
  const auto begin_of = [&](std::uint64_t i) {
    return std::min(num_samples, static_cast<std::uint32_t>(groups * i / chunks
                                                            * group_size));
  };
  const auto first = begin_of(chunk);
  return {SampleId{first}, begin_of(std::uint64_t{chunk} + 1) - first};
}

std::vector<Share> split_call(const Call& call, std::uint32_t dp,
                              std::span<const std::uint32_t> tokens,
                              SampleRange range, std::uint32_t group_size,
                              std::uint32_t mini_batches) {
  const bool trains = call.kind == CallKind::train;
  const auto unit = call.kind == CallKind::generate ? group_size : 1;
  std::vector<Share> shares(dp);
  const auto ranges
    = plans::mini_batches(range.count, trains ? mini_batches : 1, group_size);
  for (const auto& batch : ranges) {
    const auto first = range.first.value + batch.first.value;
    auto parts = balanced(first, first + batch.count, dp, tokens, unit);
    for (std::uint32_t i = 0; i < dp; ++i)
      shares[i].push_back(std::move(parts[i]));
  }
  return shares;
}

} // namespace troupe::plans
