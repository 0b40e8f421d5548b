#include "models/gradient_sync.hpp"

#include "net/collectives.hpp"

#include <algorithm>

namespace troupe::models {

GradientSync::GradientSync(const ModelPart& part, Parameters& parameters)
  : parameters_(parameters) {
  if (part.strategy.zero != Zero::none && part.strategy.dp > 1)
    cut_.emplace(part, parameters);
  for (std::size_t i = 0; i < part.boxes.size(); ++i) {
    const PartBox& mine = part.boxes[i];
    const std::int32_t layer = parameters.shapes()[i].layer;
    const std::int64_t begin = parameters.offset(i);
    if (units_.empty() || units_.back().layer != layer)
      units_.push_back({layer, begin, begin});
    units_.back().end = begin + mine.box.num_elements();
    if (mine.over_stages)
      tied_.push_back({parameters.offset(i), mine.box.num_elements(), 0});
    if (!mine.over_tensor)
      continue;
    const ParameterShape& whole = part.parameters[mine.box.parameter];
    shared_.push_back({parameters.offset(i), mine.box.num_elements(),
                       buffer_size_ + mine.box.row0 * whole.cols});
    buffer_size_ += whole.num_elements();
  }
}

void GradientSync::sum_over_tensor(net::Collectives& tp) {
  if (buffer_size_ == 0)
    return;
  float* buffer = buffer_.reserve(buffer_size_);
  std::fill_n(buffer, buffer_size_, 0.0F);
  float* gradient = parameters_.plane(Plane::grad).data();
  for (const Shared& box : shared_)
    std::copy_n(gradient + box.offset, box.count, buffer + box.place);
  tp.all_reduce_sum(buffer, static_cast<std::size_t>(buffer_size_), DType::f32,
                    "shared gradients");
  for (const Shared& box : shared_)
    std::copy_n(buffer + box.place, box.count, gradient + box.offset);
}

void GradientSync::sum_over_ends(net::Collectives& ends) {
  float* gradient = parameters_.plane(Plane::grad).data();
  for (const Shared& box : tied_)
    ends.all_reduce_sum(gradient + box.offset,
                        static_cast<std::size_t>(box.count), DType::f32,
                        "tied gradients");
}

void GradientSync::begin(const Groups& groups) {
  begun_ = true;
  unsummed_ = units_.size();
  // Owners' runs of a cut unit need not have the same elements, so they sum
  // before the copies do: nothing can be summed beside backward.
  const bool owners_first
    = cut_ && (groups.tp != nullptr || groups.ends != nullptr);
  dp_ = owners_first ? nullptr : groups.dp;
}

void GradientSync::after_backward(std::int64_t layer) {
  sum_down_to(layer);
}

void GradientSync::sum_down_to(std::int64_t layer) {
  if (dp_ == nullptr)
    return;
  float* gradient = parameters_.plane(Plane::grad).data();
  for (; unsummed_ > 0 && units_[unsummed_ - 1].layer >= layer; --unsummed_) {
    const std::size_t index = unsummed_ - 1;
    background_.run([this, index, gradient] {
      const Unit& unit = units_[index];
      if (cut_)
        cut_->sum_own(index, gradient, *dp_);
      else
        dp_->all_reduce_sum(gradient + unit.begin,
                            static_cast<std::size_t>(unit.end - unit.begin),
                            DType::f32, "gradients");
    });
  }
}

void GradientSync::finish(const Groups& groups) {
  if (!begun_)
    begin(groups);
  const auto owners = [&] {
    if (groups.tp != nullptr)
      sum_over_tensor(*groups.tp);
    if (groups.ends != nullptr)
      sum_over_ends(*groups.ends);
  };
  const bool owners_first = dp_ == nullptr;
  if (owners_first)
    owners();
  dp_ = groups.dp;
  sum_down_to(-1);
  begun_ = false;
  background_.wait();
  if (!owners_first)
    owners();
}

void GradientSync::gather_weights(const Groups& groups) {
  if (!cut_)
    return;
  float* weights = parameters_.plane(Plane::weight).data();
  for (std::size_t unit = 0; unit < cut_->num_units(); ++unit)
    cut_->gather(unit, weights, *groups.dp);
}

double GradientSync::sum_over_parts(double mine, const Groups& groups) const {
  for (const auto& group : {groups.tp, groups.pp, cut_ ? groups.dp : nullptr})
    if (group != nullptr && group->size() > 1)
      group->all_reduce_sum(&mine, 1, DType::f64, "gradient norm");
  return mine;
}

} // namespace troupe::models
