#include "plans/memory/mask_memory.hpp"

#include "config/base/arithmetic.hpp"
#include "plans/memory/micro_batches.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <set>
#include <vector>

namespace troupe::plans {

namespace {

constexpr std::uint64_t bytes_of_id = 4;     // i32, as the counts
constexpr std::uint64_t bytes_of_offset = 8; // i64

std::uint64_t tokens_of(const BatchSizes& sizes) {
  return static_cast<std::uint64_t>(
    std::max<std::int64_t>(1, sizes.max_sequence_tokens));
}

std::uint64_t new_tokens_of(const BatchSizes& sizes) {
  return sizes.max_new_tokens > 0
           ? static_cast<std::uint64_t>(sizes.max_new_tokens)
           : tokens_of(sizes);
}

std::uint64_t ids_of(std::int64_t most_ids) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, most_ids));
}

bool has_mask(const Call& call, const std::vector<std::string>& keys) {
  return std::ranges::any_of(keys, [&](const std::string& key) {
    return call.argument(key) == "kept_ids";
  });
}

using BytesByNode = std::map<std::uint32_t, std::uint64_t>;

/// The masks of one call's samples, by host.
class CallMasks {
public:
  CallMasks(const Call& call, const ExecutionPlan& plan,
            const BatchSizes& sizes, std::int64_t most_ids)
    : call_(call),
      plan_(plan),
      place_(plan.calls.at(call.name)),
      sizes_(sizes),
      most_ids_(most_ids) {}

  /// Returns what it leaves there: each dp rank's rows once, of every round and
  /// of steps that begin ahead.
  BytesByNode written() const {
    std::map<std::uint32_t, std::set<std::uint32_t>> ranks;
    for (std::uint32_t i = 0; i < place_.devices.size(); ++i)
      ranks[node_of(i)].insert(coordinate_of(place_.strategy, i).dp
                               / place_.strategy.cp);
    const std::uint64_t times
      = std::uint64_t{call_.rows.rounds} * (1 + plan_.lag_of(call_.name));
    BytesByNode bytes;
    for (const auto& [node, own] : ranks)
      bytes[node] = times * own.size() * a_rank();
    return bytes;
  }
  /// Returns what each device takes while it reads: the last stage has logits.
  std::map<Rank, std::uint64_t> read() const {
    const auto batch = micro_batches_of(call_.kind, place_, sizes_,
                                        static_cast<double>(tokens_of(sizes_)));
    const auto samples = static_cast<std::uint64_t>(std::ceil(batch.samples));
    std::map<Rank, std::uint64_t> bytes;
    for (std::uint32_t i = 0; i < place_.devices.size(); ++i) {
      const bool has_logits
        = coordinate_of(place_.strategy, i).pp + 1 == place_.strategy.pp;
      bytes[place_.devices[i]]
        = a_rank()
          + (has_logits ? mask_batch_bytes(sizes_, samples, most_ids_) : 0);
    }
    return bytes;
  }

private:
  std::uint32_t node_of(std::uint32_t i) const {
    return plan_.cluster.node_of(place_.devices[i]);
  }
  std::uint64_t a_rank() const {
    return mask_row_bytes(
      sizes_,
      ceil_div(std::uint64_t{sizes_.samples_per_step},
               std::uint64_t{place_.strategy.sample_ranks()}),
      most_ids_);
  }

  const Call& call_;
  const ExecutionPlan& plan_;
  const Placement& place_;
  const BatchSizes& sizes_;
  std::int64_t most_ids_;
};

std::uint64_t most_of(const BytesByNode& bytes, std::uint32_t node) {
  const auto found = bytes.find(node);
  return found == bytes.end() ? 0 : found->second;
}

} // namespace

std::uint64_t mask_row_bytes(const BatchSizes& sizes, std::uint64_t samples,
                             std::int64_t most_ids) {
  return samples * bytes_of_id
         * (tokens_of(sizes) + new_tokens_of(sizes) * ids_of(most_ids));
}

std::uint64_t mask_batch_bytes(const BatchSizes& sizes, std::uint64_t samples,
                               std::int64_t most_ids) {
  const auto tokens = samples * tokens_of(sizes);
  const auto wanted = samples * new_tokens_of(sizes);
  return (tokens + wanted) * bytes_of_offset
         + 2 * wanted * ids_of(most_ids) * bytes_of_id;
}

MaskBytes mask_bytes(const Workflow& workflow, const ExecutionPlan& plan,
                     const BatchSizes& sizes, std::int64_t most_ids) {
  BytesByNode stored, read;
  std::map<Rank, std::uint64_t> by_device; // computes one call at a time
  for (const auto& call : workflow.calls) {
    if (has_mask(call, call.writes))
      for (const auto& [node, bytes] :
           CallMasks(call, plan, sizes, most_ids).written())
        stored[node] += bytes;
    if (has_mask(call, call.reads))
      for (const auto& [device, bytes] :
           CallMasks(call, plan, sizes, most_ids).read())
        by_device[device] = std::max(by_device[device], bytes);
  }
  for (const auto& [device, bytes] : by_device)
    read[plan.cluster.node_of(device)] += bytes;
  MaskBytes most;
  for (std::uint32_t node = 0; node < plan.cluster.nodes; ++node) {
    const MaskBytes own{.stored = most_of(stored, node),
                        .read = most_of(read, node)};
    if (own.all() > most.all())
      most = own;
  }
  return most;
}

} // namespace troupe::plans
