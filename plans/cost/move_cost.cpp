#include "plans/cost/move_cost.hpp"

#include "plans/cost/cell_layout.hpp"
#include "plans/cost/hardware.hpp"
#include "plans/weights/layout.hpp"
#include "plans/weights/move_plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace troupe::plans {

namespace {

using internal::Cell;
using internal::CellLayout;

constexpr std::uint32_t no_cell = ~0u;

/// A cell of the source on one node: the number of its devices that hold it,
/// and the bytes they send to others there.
struct NodeCell {
  std::uint32_t number = 0;
  Cell cell = {};
  double owners = 0;
  double sent = 0;
};

/// The bytes that a node's devices receive, in order, and those that its
/// busiest owner sends to others there.
struct NodeTally {
  struct Received {
    double here = 0, near = 0, far = 0;
  };
  std::vector<Received> received = {};
  double busiest_owner = 0;
};

/// Sums the bytes that targets receive from each owner. Most nodes of a large
/// mesh hold and want the same cells as others: each kind is counted once.
class MoveTally {
public:
  MoveTally(const UnitBytes& model, const Placement& source,
            const Placement& target, const Cluster& cluster)
    : from_(model, source.strategy),
      to_(model, target.strategy),
      node_size_(cluster.devices_per_node),
      source_(std::size_t{node_size_} * cluster.nodes, no_cell),
      owners_(from_.num_cells()),
      wants_(cluster.nodes),
      far_(to_.num_cells()) {
    for (std::size_t i = 0; i < source.devices.size(); ++i) {
      const auto number = from_.number_at(i);
      at_or_grow(source_, source.devices[i].value, no_cell) = number;
      ++owners_[number];
    }
    for (std::size_t i = 0; i < target.devices.size(); ++i) {
      auto& wants = at_or_grow(wants_, cluster.node_of(target.devices[i]), {});
      wants.push_back(target.devices[i].value % node_size_);
      wants.push_back(to_.number_at(i));
    }
  }

  MoveBytes total() {
    for (std::uint32_t node = 0; node < wants_.size(); ++node)
      if (!wants_[node].empty())
        receive(node);
    send_all_far();
    return total_;
  }

private:
  /// By device of the node the cell of the source, then by receiver its place
  /// on the node and the cell that it wants.
  using NodeKind = std::vector<std::uint32_t>;

  template <class Element>
  static Element& at_or_grow(std::vector<Element>& list, std::size_t index,
                             const Element& filler) {
    if (index >= list.size())
      list.resize(index + 1, filler);
    return list[index];
  }

  void receive(std::uint32_t node) {
    NodeKind kind(node_size_, no_cell);
    const auto begin = std::size_t{node} * node_size_;
    for (std::size_t i = 0; i < node_size_ && begin + i < source_.size(); ++i)
      kind[i] = source_[begin + i];
    const auto& wants = wants_[node];
    kind.insert(kind.end(), wants.begin(), wants.end());
    const auto [found, added] = tallies_.try_emplace(std::move(kind));
    if (added)
      found->second = tally(found->first);
    const auto& tally = found->second;
    for (std::size_t i = 0; i < tally.received.size(); ++i) {
      const auto& [here, near, far] = tally.received[i];
      far_[wants[2 * i + 1]] += far;
      total_.device += here;
      total_.intra += near;
      total_.inter += far;
      total_.busiest_intra = std::max(total_.busiest_intra, near);
      total_.busiest_inter = std::max(total_.busiest_inter, far);
    }
    total_.busiest_intra = std::max(total_.busiest_intra, tally.busiest_owner);
  }

  NodeTally tally(const NodeKind& kind) {
    std::vector<NodeCell> cells;
    for (std::size_t i = 0; i < node_size_; ++i) {
      if (kind[i] == no_cell)
        continue;
      auto found = std::ranges::find(cells, kind[i], &NodeCell::number);
      if (found == cells.end())
        found = cells.insert(cells.end(),
                             {.number = kind[i], .cell = from_.cell(kind[i])});
      ++found->owners;
    }
    NodeTally all;
    for (std::size_t i = node_size_; i < kind.size(); i += 2)
      all.received.push_back(
        received(to_.cell(kind[i + 1]), kind[kind[i]], cells));
    for (const auto& cell : cells)
      all.busiest_owner = std::max(all.busiest_owner, cell.sent / cell.owners);
    return all;
  }

  NodeTally::Received received(const Cell& cell, std::uint32_t own,
                               std::vector<NodeCell>& cells) {
    const auto wanted = to_.bytes(cell);
    double here = 0;
    if (own != no_cell)
      here = std::min(wanted, to_.common_bytes(cell, from_, from_.cell(own)));
    const auto near = from_node(cell, cells, wanted - here);
    return {here, near, std::max(0.0, wanted - here - near)};
  }

  /// Returns the bytes of `cell` that owners on the node can send, at most
  /// `missing`.
  double from_node(const Cell& cell, std::vector<NodeCell>& cells,
                   double missing) {
    if (missing <= 0)
      return 0;
    shared_.clear();
    double covered = 0;
    for (const auto& theirs : cells) {
      shared_.push_back(to_.common_bytes(cell, from_, theirs.cell));
      covered += shared_.back();
    }
    // bytes already on the device are covered too, but not sent
    const auto wanted = to_.bytes(cell);
    const auto sent = std::clamp(covered - (wanted - missing), 0.0, missing);
    for (std::size_t i = 0; i < cells.size() && covered > 0; ++i)
      cells[i].sent += sent * shared_[i] / covered;
    return sent;
  }

  /// The receiver of a cell does not matter: its owners on other nodes share
  /// the work.
  void send_all_far() {
    std::vector<double> sent(from_.num_cells());
    std::vector<std::uint32_t> stages;
    auto stage = no_cell;
    for (std::uint32_t i = 0; i < far_.size(); ++i) {
      if (far_[i] <= 0)
        continue;
      const auto cell = to_.cell(i);
      if (cell.stage != stage)
        stages = to_.common_stages(cell.stage, from_);
      stage = cell.stage;
      send_far(cell, far_[i], stages, sent);
    }
    for (std::size_t i = 0; i < sent.size(); ++i)
      if (sent[i] > 0)
        total_.busiest_inter
          = std::max(total_.busiest_inter, sent[i] / owners_[i]);
  }

  void send_far(const Cell& cell, double bytes,
                const std::vector<std::uint32_t>& stages,
                std::vector<double>& sent) {
    shared_.clear();
    double all = 0;
    to_.each_common(cell, from_, stages, [&](std::uint32_t theirs) {
      shared_.push_back(to_.common_bytes(cell, from_, from_.cell(theirs)));
      all += shared_.back();
    });
    if (all <= 0)
      return;
    auto share = shared_.begin();
    to_.each_common(cell, from_, stages, [&](std::uint32_t theirs) {
      sent[theirs] += bytes * *share++ / all;
    });
  }

  CellLayout from_;
  CellLayout to_;
  std::uint32_t node_size_;
  std::vector<std::uint32_t> source_; ///< cell by device, or no_cell
  std::vector<double> owners_;        ///< by cell of the source
  std::vector<std::vector<std::uint32_t>> wants_; ///< by node, as in NodeKind
  std::map<NodeKind, NodeTally> tallies_;
  MoveBytes total_;
  std::vector<double> far_;    ///< from other nodes, by cell of the target
  std::vector<double> shared_; ///< scratch
};

} // namespace

namespace {

UnitBytes bytes_of(const std::vector<ParameterShape>& list,
                   const ModelShape& shape, DType dtype) {
  UnitBytes model{.costs = unit_costs(shape)};
  model.units.resize(static_cast<std::size_t>(shape.num_layers) + 2);
  for (const auto& parameter : list)
    model.units.at(static_cast<std::size_t>(parameter.layer + 1))
      += static_cast<double>(parameter.num_elements())
         * static_cast<double>(size_bytes(dtype));
  return model;
}

} // namespace

UnitBytes unit_bytes(const ModelShape& shape, DType dtype) {
  auto model = bytes_of(parameters(shape), shape, dtype);
  model.tied = shape.tied_embeddings && !shape.scalar_head;
  return model;
}

UnitBytes moved_bytes(const ModelShape& shape, DType dtype) {
  return shape.lora.exists() ? bytes_of(adapters(shape), shape, dtype)
                             : unit_bytes(shape, dtype);
}

MoveBytes move_bytes(const UnitBytes& model, const Placement& source,
                     const Placement& target, const Cluster& cluster) {
  return MoveTally(model, source, target, cluster).total();
}

MoveBytes planned_move_bytes(const ModelShape& shape, DType dtype,
                             const Placement& source, const Placement& target,
                             const Cluster& cluster) {
  const auto moved = trained_parameters(shape);
  const auto layout = [&](const Placement& mesh) {
    return make_layout({moved, shape}, mesh.strategy, mesh.devices, dtype);
  };
  MoveBytes bytes;
  std::map<Rank, double> sent_near, sent_far, got_near, got_far;
  for (const auto& transfer :
       move_plan(layout(source), layout(target), cluster)) {
    const auto size = static_cast<double>(transfer.total_bytes());
    if (transfer.from == transfer.to) {
      bytes.device += size;
      continue;
    }
    const bool near
      = cluster.node_of(transfer.from) == cluster.node_of(transfer.to);
    (near ? bytes.intra : bytes.inter) += size;
    (near ? sent_near : sent_far)[transfer.from] += size;
    (near ? got_near : got_far)[transfer.to] += size;
  }
  for (const auto* near : {&sent_near, &got_near})
    for (const auto& [device, size] : *near)
      bytes.busiest_intra = std::max(bytes.busiest_intra, size);
  for (const auto* far : {&sent_far, &got_far})
    for (const auto& [device, size] : *far)
      bytes.busiest_inter = std::max(bytes.busiest_inter, size);
  return bytes;
}

MoveBytes update_bytes(const ModelShape& shape, const Strategy& strategy) {
  double count = 0;
  for (const auto& parameter : trained_parameters(shape))
    count += static_cast<double>(parameter.num_elements());
  return {.intra = strategy.dp * count * double(size_bytes(DType::f32))};
}

ModelShape with_joined_experts(ModelShape shape, const Strategy& from,
                               const Strategy& to) {
  auto& experts = shape.experts;
  const auto parts = std::lcm(std::int64_t{from.ep}, std::int64_t{to.ep});
  if (!experts.exist() || experts.count % parts != 0)
    return shape;
  experts.width *= experts.count / parts;
  experts.count = parts;
  experts.per_token = std::min(experts.per_token, parts);
  return shape;
}

double move_seconds(const MoveBytes& bytes, const Hardware& hardware,
                    double sent_share) {
  if (bytes.intra + bytes.inter <= 0)
    return 0;
  const auto intra_Bps
    = hardware.move_Bps > 0 ? hardware.move_Bps : hardware.intra_Bps;
  return hardware.move_s
         + std::max(bytes.busiest_intra / intra_Bps,
                    sent_share * bytes.busiest_inter / hardware.inter_Bps);
}

} // namespace troupe::plans
