#include "plans/cost/cluster_hardware.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

namespace troupe::plans {

namespace {

constexpr std::string_view profiled_name = "profiled on ";

/// Returns the same hardware with numbers in place of "the same as another".
Hardware written_out(Hardware hardware) {
  const auto fill = [&](double Hardware::*field, double other) {
    if (hardware.*field == 0)
      hardware.*field = other;
  };
  fill(&Hardware::cache_Bps, hardware.mem_Bps);
  fill(&Hardware::optimizer_Bps, hardware.mem_Bps);
  fill(&Hardware::sum_Bps, hardware.intra_Bps);
  fill(&Hardware::move_Bps, hardware.intra_Bps);
  fill(&Hardware::gather_Bps, hardware.zero_Bps);
  return hardware;
}

bool is_rate(const HardwareField& field) {
  return std::string_view(field.unit) == "bytes/s"
         || std::string_view(field.unit) == "FLOP/s";
}

/// Returns whether a smaller number has fewer kernels.
bool is_version(const HardwareField& field) {
  return std::string_view(field.unit) == "version";
}

/// Returns whether a larger number is slower: not memory, not a share.
bool is_cost(const HardwareField& field) {
  return !is_rate(field) && !is_version(field)
         && std::string_view(field.unit) != "bytes"
         && std::string_view(field.unit) != "share";
}

/// Returns whether 0 means that the number of a whole layer counts.
bool is_of_kernel(const HardwareField& field) {
  return field.value == &Hardware::launch_s
         || field.value == &Hardware::graph_gap_s;
}

double graph_gaps_s(const Hardware& hardware) {
  return hardware.launch_graph_s > 0
           ? hardware.launch_graph_s
           : hardware.launch_layer_s + hardware.launch_tp_extra_s;
}

/// Makes each number of `all` the worse of its own and that of `one`.
void take_worse(Hardware& all, const Hardware& one) {
  const bool graphs = all.launch_graph_s > 0 || one.launch_graph_s > 0;
  const auto gaps_s = std::max(graph_gaps_s(all), graph_gaps_s(one));
  const bool has_less = usable_bytes(one) < usable_bytes(all);
  for (const auto& field : hardware_fields()) {
    auto& mine = all.*(field.value);
    const auto theirs = one.*(field.value);
    if (is_rate(field) || is_version(field))
      mine = std::min(mine, theirs);
    else if (is_of_kernel(field) && std::min(mine, theirs) == 0)
      mine = 0;
    else if (is_cost(field))
      mine = std::max(mine, theirs);
  }
  all.launch_graph_s = graphs ? gaps_s : 0;
  if (one.host_mem_bytes > 0) // 0: not known
    all.host_mem_bytes = all.host_mem_bytes > 0
                           ? std::min(all.host_mem_bytes, one.host_mem_bytes)
                           : one.host_mem_bytes;
  if (!has_less)
    return;
  all.mem_bytes = one.mem_bytes;
  all.reserve_bytes = one.reserve_bytes;
}

/// Returns "2 x h100x8 + 4 x a100x8"; "profiled on ..." if all of them were.
std::string name_of(const ClusterHardware& cluster) {
  const bool profiled = std::ranges::all_of(cluster.kinds, [](const auto& one) {
    return one.hardware.name.starts_with(profiled_name);
  });
  std::vector<std::string> parts;
  for (std::uint32_t kind = 0; kind < cluster.kinds.size(); ++kind)
    parts.push_back(fmt::format("{} x {}",
                                std::ranges::count(cluster.kind_of_nodes, kind),
                                cluster.kinds[kind].hardware.name.substr(
                                  profiled ? profiled_name.size() : 0)));
  return fmt::format("{}{}", profiled ? profiled_name : "",
                     fmt::join(parts, " + "));
}

} // namespace

std::uint64_t usable_bytes(const Hardware& hardware) {
  return static_cast<std::uint64_t>(
    std::max(0.0, hardware.mem_bytes - hardware.reserve_bytes));
}

Hardware slowest_of(const std::vector<NodeKind>& kinds, KindSet set) {
  const auto first = static_cast<std::uint32_t>(std::countr_zero(set));
  TROUPE_CHECK(first < kinds.size(), "a mesh on no kind of node");
  auto slowest = written_out(kinds[first].hardware);
  slowest.name.clear();
  slowest.sources.clear();
  for (auto kind = first + 1; kind < kinds.size(); ++kind)
    if ((set >> kind & 1) != 0)
      take_worse(slowest, written_out(kinds[kind].hardware));
  return slowest;
}

ClusterHardware::ClusterHardware(std::vector<NodeKind> all,
                                 std::vector<std::uint32_t> nodes)
  : kinds(std::move(all)),
    kind_of_nodes(std::move(nodes)) {
  update();
}

void ClusterHardware::update() {
  if (kinds.empty())
    return;
  const auto before = name;
  static_cast<Hardware&>(*this)
    = slowest_of(kinds, (KindSet{1} << kinds.size()) - 1);
  name = before.empty() ? name_of(*this) : before;
  for (const auto& kind : kinds)
    for (const auto& [path, source] : kind.hardware.sources)
      sources[fmt::format("{} of {}", path, kind.hardware.name)] = source;
}

std::uint32_t ClusterHardware::kind_of(std::uint32_t node) const {
  if (kind_of_nodes.empty())
    return 0;
  return node < kind_of_nodes.size() ? kind_of_nodes[node]
                                     : kind_of_nodes.back();
}

const Hardware& ClusterHardware::of_node(std::uint32_t node) const {
  if (kinds.empty())
    return *this;
  return kinds[kind_of(node)].hardware;
}

KindSet ClusterHardware::kinds_of(std::uint32_t first,
                                  std::uint32_t end) const {
  KindSet set = 0;
  for (auto node = first; node < end && !kinds.empty(); ++node)
    set |= KindSet{1} << kind_of(node);
  return set;
}

KindSet ClusterHardware::kinds_of(const std::vector<Rank>& devices,
                                  const Cluster& cluster) const {
  KindSet set = 0;
  if (kinds.empty())
    return set;
  for (const auto device : devices)
    set |= KindSet{1} << kind_of(cluster.node_of(device));
  return set;
}

void ClusterHardware::reserve_share(double share) {
  reserve_bytes += share * mem_bytes;
  for (auto& kind : kinds)
    kind.hardware.reserve_bytes += share * kind.hardware.mem_bytes;
  update();
}

} // namespace troupe::plans
