#include "plans/cost/move_cost.hpp"

#include "plans/cost/hardware.hpp"
#include "plans/weights/layout.hpp"
#include "plans/weights/move_plan.hpp"
#include "plans/weights/stage_layers.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::plans {

namespace {

/// Half-open range of bytes or of shares of a tensor dimension.
struct Part {
  double begin = 0;
  double end = 0;
  double size() const {
    return std::max(0.0, end - begin);
  }
};

Part common(const Part& a, const Part& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

/// One dp share of one tensor share of one stage; all its owners hold the same
/// bytes.
struct Cell {
  std::uint32_t stage = 0;
  std::uint32_t tensor = 0;
  std::uint32_t data = 0; ///< 0 unless parameters are sharded over dp
  auto operator<=>(const Cell&) const = default;
};

/// A layout as cells: a model's bytes on a line (units one after another), cut
/// into stages along it and into tensor and data shares across it.
class CellLayout {
public:
  CellLayout(const UnitBytes& model, const Placement& placement)
    : placement_(placement),
      sharded_(placement.strategy.zero == Zero::z3) {
    const auto pp = placement.strategy.pp;
    const StageLayers layers(static_cast<std::uint32_t>(model.units.size() - 2),
                             pp, costs_of(model));
    stages_.resize(pp);
    double at = 0;
    for (std::size_t unit = 0; unit < model.units.size(); ++unit) {
      std::size_t stage = 0;
      if (unit == model.units.size() - 1)
        stage = pp - 1;
      else if (unit > 0)
        stage = layers.stage_of(static_cast<std::uint32_t>(unit - 1));
      if (stages_[stage].size() == 0)
        stages_[stage].begin = at;
      at += model.units[unit];
      stages_[stage].end = at;
    }
    embedding_ = {0, model.units.front()};
    head_ = {at - model.units.back(), at};
    if (model.tied && pp > 1)
      tied_ = {0, model.units.front()};
  }

  Cell cell(std::size_t index) const {
    const auto where
      = coordinate_of(placement_.strategy, static_cast<std::uint32_t>(index));
    return {where.pp, where.tp, sharded_ ? where.dp : 0};
  }
  /// Returns the index of a cell in ascending order.
  std::size_t number_of(const Cell& cell) const {
    const auto shares
      = sharded_ ? std::size_t{placement_.strategy.dp} : std::size_t{1};
    return (std::size_t{cell.stage} * placement_.strategy.tp + cell.tensor)
             * shares
           + cell.data;
  }
  std::size_t num_cells() const {
    return number_of({.stage = placement_.strategy.pp});
  }
  Cell cell_numbered(std::size_t number) const {
    const auto shares
      = sharded_ ? std::size_t{placement_.strategy.dp} : std::size_t{1};
    const auto tp = std::size_t{placement_.strategy.tp};
    return {static_cast<std::uint32_t>(number / shares / tp),
            static_cast<std::uint32_t>(number / shares % tp),
            static_cast<std::uint32_t>(number % shares)};
  }
  Part tensor_share(const Cell& cell) const {
    const double tp = placement_.strategy.tp;
    return {cell.tensor / tp, (cell.tensor + 1) / tp};
  }
  double data_shares() const {
    return sharded_ ? placement_.strategy.dp : 1.0;
  }
  Part data_share(const Cell& cell) const {
    return {cell.data / data_shares(), (cell.data + 1) / data_shares()};
  }
  double bytes(const Cell& cell) const {
    return (stages_[cell.stage].size() + tied_extra(cell.stage))
           * tensor_share(cell).size() / data_shares();
  }
  /// Returns the bytes that `mine` of this layout shares with `theirs` of
  /// `other`.
  double common_bytes(const Cell& mine, const CellLayout& other,
                      const Cell& theirs) const {
    const auto across
      = common(tensor_share(mine), other.tensor_share(theirs)).size();
    if (across <= 0)
      return 0;
    const auto along = common(stages_[mine.stage], other.stages_[theirs.stage]);
    const auto tied = tied_common(mine.stage, other, theirs.stage);
    if (along.size() <= 0 && tied <= 0)
      return 0;
    const auto ends
      = common(along, embedding_).size() + common(along, head_).size();
    const auto layers = std::max(0.0, along.size() - ends);
    return layers * across * flat_share(mine, other, theirs)
           + (ends + tied)
               * common(row_share(mine), other.row_share(theirs)).size();
  }

private:
  /// With equal cuts only equal shares overlap; otherwise a flat share of a
  /// layer, which is made of whole parameters, is spread evenly over the shares
  /// of each parameter.
  double flat_share(const Cell& mine, const CellLayout& other,
                    const Cell& theirs) const {
    const bool aligned = placement_.strategy.tp == other.placement_.strategy.tp;
    return aligned && sharded_ && other.sharded_
             ? common(data_share(mine), other.data_share(theirs)).size()
             : 1.0 / (data_shares() * other.data_shares());
  }
  /// Embedding and head are one matrix cut by rows, so flat shares are rows
  /// too.
  Part row_share(const Cell& cell) const {
    const auto rows = tensor_share(cell);
    const auto data = data_share(cell);
    return {rows.begin + rows.size() * data.begin,
            rows.begin + rows.size() * data.end};
  }
  double tied_extra(std::uint32_t stage) const {
    return stage + 1 == stages_.size() ? tied_.size() : 0;
  }
  /// Common bytes of the embedding on a last stage, which a first stage holds
  /// too.
  double tied_common(std::uint32_t mine, const CellLayout& other,
                     std::uint32_t theirs) const {
    const bool mine_last = tied_extra(mine) > 0;
    const bool theirs_last = other.tied_extra(theirs) > 0;
    if (mine_last && theirs_last)
      return tied_.size();
    if (mine_last)
      return theirs == 0 ? tied_.size() : 0;
    return theirs_last && mine == 0 ? other.tied_.size() : 0;
  }

  const Placement& placement_;
  bool sharded_;
  std::vector<Part> stages_;
  Part embedding_;
  Part head_;
  Part tied_;
};

/// A cell of the source on one node: the number of its devices that hold it,
/// and the bytes they send to others there.
struct NodeCell {
  Cell cell = {};
  double owners = 0;
  double sent = 0;
};

/// Cells of the source by node and by device.
struct SourceIndex {
  std::vector<std::vector<NodeCell>> on_node = {}; ///< by node, each cell once
  std::vector<double> owners = {};                 ///< by index of the cell
  std::vector<std::optional<Cell>> of_device = {}; ///< by rank
};

template <class Element>
Element& at_or_grow(std::vector<Element>& list, std::size_t index) {
  if (index >= list.size())
    list.resize(index + 1);
  return list[index];
}

SourceIndex index_source(const CellLayout& layout, const Placement& source,
                         const Cluster& cluster) {
  SourceIndex index;
  index.owners.resize(layout.num_cells());
  for (std::size_t i = 0; i < source.devices.size(); ++i) {
    const auto cell = layout.cell(i);
    const auto device = source.devices[i];
    at_or_grow(index.of_device, device.value) = cell;
    auto& here = at_or_grow(index.on_node, cluster.node_of(device));
    auto found = std::ranges::find(here, cell, &NodeCell::cell);
    if (found == here.end())
      found = here.insert(here.end(), {.cell = cell});
    ++found->owners;
    ++index.owners[layout.number_of(cell)];
  }
  return index;
}

/// Sums the bytes that targets receive from each owner.
class MoveTally {
public:
  MoveTally(const CellLayout& from, const CellLayout& to, SourceIndex source,
            const Cluster& cluster)
    : from_(from),
      to_(to),
      source_(std::move(source)),
      cluster_(cluster),
      far_(to.num_cells()),
      sent_far_(from.num_cells()) {}

  void receive(Rank device, const Cell& cell) {
    const auto wanted = to_.bytes(cell);
    double here = 0;
    if (device.value < source_.of_device.size())
      if (const auto& own = source_.of_device[device.value])
        here = std::min(wanted, to_.common_bytes(cell, from_, *own));
    const auto node = cluster_.node_of(device);
    const auto near = from_node(cell, node, wanted - here);
    const auto far = std::max(0.0, wanted - here - near);
    far_[to_.number_of(cell)] += far;
    total_.device += here;
    total_.intra += near;
    total_.inter += far;
    total_.busiest_intra = std::max(total_.busiest_intra, near);
    total_.busiest_inter = std::max(total_.busiest_inter, far);
  }

  MoveBytes total() {
    for (std::size_t i = 0; i < far_.size(); ++i)
      if (far_[i] > 0)
        send_far(to_.cell_numbered(i), far_[i]);
    for (const auto& node : source_.on_node)
      for (const auto& cell : node)
        total_.busiest_intra
          = std::max(total_.busiest_intra, cell.sent / cell.owners);
    for (std::size_t i = 0; i < sent_far_.size(); ++i)
      if (sent_far_[i] > 0)
        total_.busiest_inter
          = std::max(total_.busiest_inter, sent_far_[i] / source_.owners[i]);
    return total_;
  }

private:
  /// Returns the bytes of `cell` that owners on `node` can send, at most
  /// `missing`.
  double from_node(const Cell& cell, std::uint32_t node, double missing) {
    if (node >= source_.on_node.size() || missing <= 0)
      return 0;
    auto& cells = source_.on_node[node];
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

  /// The receiver of `cell` does not matter: its owners on other nodes share
  /// the work.
  void send_far(const Cell& cell, double bytes) {
    shared_.clear();
    double all = 0;
    for (std::size_t i = 0; i < sent_far_.size(); ++i) {
      shared_.push_back(to_.common_bytes(cell, from_, from_.cell_numbered(i)));
      all += shared_.back();
    }
    for (std::size_t i = 0; i < sent_far_.size() && all > 0; ++i)
      sent_far_[i] += bytes * shared_[i] / all;
  }

  const CellLayout& from_;
  const CellLayout& to_;
  SourceIndex source_;
  const Cluster& cluster_;
  MoveBytes total_;
  std::vector<double> far_;      ///< from other nodes, by cell of the target
  std::vector<double> sent_far_; ///< by cell of the source
  std::vector<double> shared_;   ///< scratch
};

} // namespace

UnitCosts costs_of(const UnitBytes& model) {
  return {.layer = model.units.at(1),
          .head = model.units.back() + (model.tied ? model.units.front() : 0),
          .tied = model.tied};
}

UnitBytes unit_bytes(const ModelShape& shape, DType dtype) {
  UnitBytes model;
  model.units.resize(static_cast<std::size_t>(shape.num_layers) + 2);
  for (const auto& parameter : parameters(shape))
    model.units.at(static_cast<std::size_t>(parameter.layer + 1))
      += static_cast<double>(parameter.num_elements())
         * static_cast<double>(size_bytes(dtype));
  model.tied = shape.tied_embeddings && !shape.scalar_head;
  return model;
}

MoveBytes move_bytes(const UnitBytes& model, const Placement& source,
                     const Placement& target, const Cluster& cluster) {
  const CellLayout from(model, source);
  const CellLayout to(model, target);
  MoveTally tally(from, to, index_source(from, source, cluster), cluster);
  for (std::size_t i = 0; i < target.devices.size(); ++i)
    tally.receive(target.devices[i], to.cell(i));
  return tally.total();
}

MoveBytes planned_move_bytes(const ModelShape& shape, DType dtype,
                             const Placement& source, const Placement& target,
                             const Cluster& cluster) {
  const auto all = parameters(shape);
  const auto layout = [&](const Placement& mesh) {
    return make_layout(all, mesh.strategy, mesh.devices, dtype);
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

double move_seconds(const MoveBytes& bytes, const Hardware& hardware) {
  if (bytes.intra + bytes.inter <= 0)
    return 0;
  const auto intra_Bps
    = hardware.move_Bps > 0 ? hardware.move_Bps : hardware.intra_Bps;
  return hardware.move_s
         + std::max(bytes.busiest_intra / intra_Bps,
                    bytes.busiest_inter / hardware.inter_Bps);
}

} // namespace troupe::plans
