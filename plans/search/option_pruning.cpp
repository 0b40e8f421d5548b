// Keeps the options of a call that a search needs: those that no other one
// equals or beats in everything, fastest first, with what they have in common.
#include "plans/search/search_space.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace troupe::plans {

namespace {

/// Returns whether `a` is as good as `b` in everything. Chunks of a call start
/// later where they wait for each other, so they are no better than the whole
/// call. Offloaded weights are reloaded for other calls too.
bool is_as_good(const CallOption& a, const CallOption& b) {
  return (a.chunks == 1 || a.chunks == b.chunks)
         && (!a.offload.offload_weights || b.offload.offload_weights)
         && a.num_devices <= b.num_devices && a.total_s() <= b.total_s()
         && a.seconds <= b.seconds && a.device_s <= b.device_s
         && a.static_bytes <= b.static_bytes
         && a.around.server_bytes <= b.around.server_bytes
         && a.weight_bytes + a.active_bytes <= b.weight_bytes + b.active_bytes;
}

/// Key of an option's layout: options with equal keys have the same moves, and
/// may share a replica.
using MoveLayout
  = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
               std::uint32_t, std::uint32_t, bool>;
MoveLayout move_layout_of(const CallOption& option) {
  const Strategy& strategy = option.strategy;
  return {option.num_devices,
          strategy.dp,
          strategy.pp,
          strategy.tp,
          strategy.ep,
          strategy.cp,
          strategy.zero == Zero::z3};
}

/// Numbers what options have in common, and links those that differ only in the
/// number of responses decoded at once.
void link_options(std::vector<CallOption>& options) {
  std::map<std::tuple<std::uint32_t, KindSet, Strategy>, std::uint32_t> meshes;
  std::map<std::tuple<std::uint32_t, int, int, bool, bool>, std::uint32_t> last;
  for (std::uint32_t i = 0; i < options.size(); ++i) {
    auto& option = options[i];
    option.mesh
      = meshes
          .try_emplace({option.num_devices, option.kinds, option.strategy}, i)
          .first->second;
    option.most_responses = option.fewer_responses = i;
    const auto [same, is_first] = last.try_emplace(
      {option.mesh, option.micro_batches, option.chunks,
       option.offload.offload_weights, option.offload.offload_optimizer},
      i);
    if (is_first)
      continue;
    auto& before = options[same->second];
    option.most_responses = before.most_responses;
    before.fewer_responses = same->second = i;
  }
}

} // namespace

/// Compares options of a role that moves only within their layout: another
/// layout has other moves. Options on other kinds of nodes lie elsewhere.
void SearchSpace::prune(SpaceCall& call) {
  std::ranges::stable_sort(call.options, {}, [](const CallOption& option) {
    return std::tuple{option.total_s(), option.num_devices, option.static_bytes,
                      option.active_bytes, option.strategy};
  });
  const bool moves = call.home >= 0 || call.tracked >= 0;
  std::map<std::tuple<KindSet, std::uint32_t, MoveLayout>,
           std::vector<std::size_t>>
    rivals; ///< kept options
  std::vector<CallOption> kept;
  for (const auto& option : call.options) {
    // on several kinds of nodes a smaller mesh may lie elsewhere
    const auto size = std::popcount(option.kinds) > 1 ? option.num_devices : 0;
    auto& others = rivals[{option.kinds, size,
                           moves ? move_layout_of(option) : MoveLayout{}}];
    const bool beaten = std::ranges::any_of(others, [&](std::size_t other) {
      return is_as_good(kept[other], option);
    });
    if (beaten) {
      ++counts_.dominated;
      continue;
    }
    others.push_back(kept.size());
    kept.push_back(option);
  }
  call.options = std::move(kept);
  link_options(call.options);
}

} // namespace troupe::plans
