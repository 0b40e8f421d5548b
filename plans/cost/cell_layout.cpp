#include "plans/cost/cell_layout.hpp"

namespace troupe::plans::internal {

namespace {

Part common(const Part& a, const Part& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

} // namespace

CellLayout::CellLayout(const UnitBytes& model, const Strategy& strategy)
  : strategy_(strategy),
    num_shares_(strategy.zero == Zero::z3 ? strategy.dp : 1) {
  const StageLayers layers(static_cast<std::uint32_t>(model.units.size() - 2),
                           strategy.pp, model.costs);
  stages_.resize(strategy.pp);
  double at = 0;
  for (std::size_t unit = 0; unit < model.units.size(); ++unit) {
    std::size_t stage = 0;
    if (unit == model.units.size() - 1)
      stage = strategy.pp - 1;
    else if (unit > 0)
      stage = layers.stage_of(static_cast<std::uint32_t>(unit - 1));
    if (stages_[stage].size() == 0)
      stages_[stage].begin = at;
    at += model.units[unit];
    stages_[stage].end = at;
  }
  embedding_ = {0, model.units.front()};
  head_ = {at - model.units.back(), at};
  if (model.tied && strategy.pp > 1)
    tied_ = {0, model.units.front()};
}

std::uint32_t CellLayout::number_at(std::size_t index) const {
  const auto where
    = coordinate_of(strategy_, static_cast<std::uint32_t>(index));
  return (where.pp * strategy_.tp + where.tp) * num_shares_
         + (num_shares_ > 1 ? where.dp : 0);
}

Cell CellLayout::cell(std::uint32_t number) const {
  return {number / num_shares_ / strategy_.tp,
          number / num_shares_ % strategy_.tp, number % num_shares_};
}

double CellLayout::common_tensor(const Cell& mine, const CellLayout& other,
                                 std::uint32_t tensor) const {
  return common(tensor_share(mine.tensor), other.tensor_share(tensor)).size();
}

double CellLayout::common_bytes(const Cell& mine, const CellLayout& other,
                                const Cell& theirs) const {
  const auto across = common_tensor(mine, other, theirs.tensor);
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

std::vector<std::uint32_t>
CellLayout::common_stages(std::uint32_t stage, const CellLayout& other) const {
  std::vector<std::uint32_t> stages;
  for (std::uint32_t i = 0; i < other.stages_.size(); ++i)
    if (common(stages_[stage], other.stages_[i]).size() > 0
        || tied_common(stage, other, i) > 0)
      stages.push_back(i);
  return stages;
}

/// With equal cuts only equal shares overlap; otherwise a flat share of a
/// layer, which is made of whole parameters, is spread evenly over the shares
/// of each parameter.
double CellLayout::flat_share(const Cell& mine, const CellLayout& other,
                              const Cell& theirs) const {
  const bool aligned = strategy_.tp == other.strategy_.tp;
  const bool both
    = strategy_.zero == Zero::z3 && other.strategy_.zero == Zero::z3;
  return aligned && both
           ? common(data_share(mine), other.data_share(theirs)).size()
           : 1.0 / (double(num_shares_) * double(other.num_shares_));
}

/// Embedding and head are one matrix cut by rows, so flat shares are rows too.
Part CellLayout::row_share(const Cell& cell) const {
  const auto rows = tensor_share(cell.tensor);
  const auto data = data_share(cell);
  return {rows.begin + rows.size() * data.begin,
          rows.begin + rows.size() * data.end};
}

/// Returns the common bytes of the embedding on a last stage, which a first
/// stage holds too.
double CellLayout::tied_common(std::uint32_t mine, const CellLayout& other,
                               std::uint32_t theirs) const {
  const bool mine_last = tied_extra(mine) > 0;
  const bool theirs_last = other.tied_extra(theirs) > 0;
  if (mine_last && theirs_last)
    return tied_.size();
  if (mine_last)
    return theirs == 0 ? tied_.size() : 0;
  return theirs_last && mine == 0 ? other.tied_.size() : 0;
}

} // namespace troupe::plans::internal
