// A layout as cells, for costs in closed form: a model's bytes on a line (units
// one after another), cut into stages along it and into tensor and data shares
// across it. All devices of a cell hold the same bytes.
#pragma once

#include "plans/cost/move_cost.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::plans::internal {

/// Half-open range of bytes or of shares of a tensor dimension.
struct Part {
  double begin = 0;
  double end = 0;
  double size() const {
    return std::max(0.0, end - begin);
  }
};

/// One dp share of one tensor share of one stage.
struct Cell {
  std::uint32_t stage = 0;
  std::uint32_t tensor = 0;
  std::uint32_t data = 0; ///< 0 unless parameters are sharded over dp
};

class CellLayout {
public:
  CellLayout(const UnitBytes& model, const Strategy& strategy);

  /// Returns the number of the cell on the device at `index` of the mesh, in
  /// ascending order of stage, tensor share, data share.
  std::uint32_t number_at(std::size_t index) const;
  std::uint32_t num_cells() const {
    return strategy_.pp * strategy_.tp * num_shares_;
  }
  Cell cell(std::uint32_t number) const;
  double bytes(const Cell& cell) const {
    return (stages_[cell.stage].size() + tied_extra(cell.stage))
           * tensor_share(cell.tensor).size() / num_shares_;
  }
  /// Returns the bytes that `mine` of this layout shares with `theirs` of
  /// `other`.
  double common_bytes(const Cell& mine, const CellLayout& other,
                      const Cell& theirs) const;
  /// Returns the stages of `other` that hold bytes of `stage`, ascending.
  std::vector<std::uint32_t> common_stages(std::uint32_t stage,
                                           const CellLayout& other) const;
  /// Visits the cells of `other` that hold bytes of `mine`, whose stage has
  /// these `stages` in common, by ascending number.
  template <class Visit>
  void each_common(const Cell& mine, const CellLayout& other,
                   const std::vector<std::uint32_t>& stages, Visit visit) const;

private:
  Part tensor_share(std::uint32_t tensor) const {
    const double tp = strategy_.tp;
    return {tensor / tp, (tensor + 1) / tp};
  }
  Part data_share(const Cell& cell) const {
    return {cell.data / double(num_shares_),
            (cell.data + 1) / double(num_shares_)};
  }
  double common_tensor(const Cell& mine, const CellLayout& other,
                       std::uint32_t tensor) const;
  double flat_share(const Cell& mine, const CellLayout& other,
                    const Cell& theirs) const;
  Part row_share(const Cell& cell) const;
  double tied_extra(std::uint32_t stage) const {
    return stage + 1 == stages_.size() ? tied_.size() : 0;
  }
  double tied_common(std::uint32_t mine, const CellLayout& other,
                     std::uint32_t theirs) const;

  Strategy strategy_;
  std::uint32_t num_shares_; ///< of parameters over dp
  std::vector<Part> stages_;
  Part embedding_;
  Part head_;
  Part tied_;
};

template <class Visit>
void CellLayout::each_common(const Cell& mine, const CellLayout& other,
                             const std::vector<std::uint32_t>& stages,
                             Visit visit) const {
  const auto tp = other.strategy_.tp;
  std::uint32_t first = 0, end = tp; // tensor shares are in order
  while (first < tp && common_tensor(mine, other, first) <= 0)
    ++first;
  while (end > first && common_tensor(mine, other, end - 1) <= 0)
    --end;
  for (const auto stage : stages)
    for (auto i = (stage * tp + first) * other.num_shares_;
         i < (stage * tp + end) * other.num_shares_; ++i)
      visit(i);
}

} // namespace troupe::plans::internal
