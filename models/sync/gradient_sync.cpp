#include "models/sync/gradient_sync.hpp"

#include "models/parallel/ordered_collectives.hpp"
#include "net/collectives/collectives.hpp"

namespace troupe::models {

GradientSync::GradientSync(const LocalModel& part, Parameters& parameters,
                           Backend& backend)
  : parameters_(parameters),
    backend_(backend),
    shared_(backend) {
  if (part.strategy.zero == Zero::z1 && part.strategy.dp > 1)
    cut_.emplace(Zero1Partition(
      part, padded_offsets(part.local_parameters).offsets, backend));
  for (const plans::GatherBuffer& unit : part.windows.units) {
    const std::size_t last = unit.end_box - 1;
    units_.push_back(
      {unit.layer, parameters.offset(unit.first_box),
       parameters.offset(last) + part.boxes[last].box.num_elements(),
       unit.is_dealt});
  }
  for (std::size_t i = 0; i < part.boxes.size(); ++i) {
    const PartBox& mine = part.boxes[i];
    const std::int64_t begin = parameters.offset(i);
    if (mine.over_stages)
      tied_.push_back({begin, mine.box.num_elements()});
    shared_.add(part, mine, begin);
  }
}

void GradientSync::begin(const Groups& groups) {
  groups_ = groups;
  dp_ = nullptr;
  begun_ = false;
  started_.reset();
  if (!cut_)
    return;
  cut_->ungathered = Ungathered::nothing;
  cut_->units.forget_sum();
}

void GradientSync::last_backward() {
  begun_ = true;
  unsummed_ = units_.size();
  // The owners' runs of a cut unit need not have the same elements, so owners
  // are summed before dp, and no sum can overlap with backward.
  const bool owners_first
    = cut_ && (groups_.tp != nullptr || groups_.ends != nullptr);
  dp_ = owners_first ? nullptr : groups_.dp;
  started_.reset();
  if (have_streams())
    started_.emplace();
}

bool GradientSync::have_streams() {
  const float* gradient = parameters_.plane(Plane::grad).data();
  bool found = false;
  for (const auto& group : {groups_.dp, groups_.expert_copies}) {
    if (group == nullptr)
      continue;
    if (group->on_streams(gradient) == nullptr)
      return false;
    found = true;
  }
  return found;
}

void GradientSync::after_backward(std::int64_t layer) {
  sum_down_to(layer);
}

void GradientSync::sum_down_to(std::int64_t layer) {
  if (dp_ == nullptr)
    return;
  for (; unsummed_ > 0 && units_[unsummed_ - 1].layer >= layer; --unsummed_)
    if (started_)
      start_sum(unsummed_ - 1);
    else
      background_.run([this, index = unsummed_ - 1] { sum_unit(index); });
}

void GradientSync::start_sum(std::size_t index) {
  const Unit& unit = units_[index];
  float* gradient = parameters_.plane(Plane::grad).data();
  if (cut_)
    return cut_->units.start_sum(index, gradient, groups_);
  net::Collectives* holders = groups_.holders(unit.is_dealt);
  if (holders == nullptr)
    return;
  net::StreamCollectives* streams = holders->on_streams(gradient);
  const net::StreamTicket ticket = streams->all_reduce_sum(
    gradient + unit.begin, static_cast<std::size_t>(unit.end - unit.begin),
    DType::f32, "gradients", net::StreamOrder::beside);
  started_->push_back({streams, ticket});
}

void GradientSync::end_sums() {
  if (!started_)
    return;
  for (const Started& sum : *started_)
    sum.group->join(sum.ticket);
  started_->clear();
  if (cut_)
    cut_->units.end_sum(parameters_.plane(Plane::grad).data());
}

void GradientSync::sum_unit(std::size_t index) {
  const Unit& unit = units_[index];
  float* gradient = parameters_.plane(Plane::grad).data();
  backend_.wait();
  if (cut_)
    return cut_->units.sum_own(index, gradient, groups_);
  if (net::Collectives* holders = groups_.holders(unit.is_dealt))
    holders->all_reduce_sum(gradient + unit.begin,
                            static_cast<std::size_t>(unit.end - unit.begin),
                            DType::f32, "gradients");
}

void GradientSync::sum_over_owners() {
  float* gradient = parameters_.plane(Plane::grad).data();
  if (groups_.tp != nullptr)
    shared_.sum(gradient, *groups_.tp);
  if (groups_.ends == nullptr)
    return;
  for (const Tied& box : tied_)
    sum_in_order(*groups_.ends, backend_, gradient + box.offset, box.count,
                 "tied gradients");
}

void GradientSync::finish() {
  if (!begun_)
    last_backward();
  const bool owners_first = dp_ == nullptr;
  if (owners_first)
    sum_over_owners();
  dp_ = groups_.dp;
  sum_down_to(-1);
  background_.wait();
  end_sums();
  if (!owners_first)
    sum_over_owners();
  dp_ = nullptr;
  begun_ = false;
}

void GradientSync::weights_changed() {
  if (cut_)
    cut_->ungathered = Ungathered::all;
}

void GradientSync::gather_weights(WeightReader reader) {
  const bool rounds
    = reader == WeightReader::kernels && parameters_.has_rounded();
  if (!cut_ || cut_->ungathered == Ungathered::nothing
      || (rounds && cut_->ungathered == Ungathered::masters))
    return;
  cut_->ungathered = rounds ? Ungathered::masters : Ungathered::nothing;
  if (!rounds)
    return cut_->units.gather(parameters_.plane(Plane::weight).data(), groups_);
  const auto [masters, rounded] = parameters_.updated_weights();
  cut_->units.gather_rounded(rounded, masters, groups_);
  parameters_.rounded_gathered();
}

// The host has waited for the last kernel, so what is wrong is known.
void GradientSync::end() {
  if (!started_)
    return;
  const float* gradient = parameters_.plane(Plane::grad).data();
  for (const auto& group : {groups_.dp, groups_.expert_copies})
    if (group != nullptr)
      group->on_streams(gradient)->check();
}

// The host has waited for the gradient: before it changes the weights, ranks
// compare what they have called.
double GradientSync::sum_over_parts(double mine) {
  if (started_)
    for (const auto& group : {groups_.dp, groups_.expert_copies})
      if (group != nullptr)
        group->on_streams(parameters_.plane(Plane::grad).data())->compare();
  const bool over_dp = cut_ || groups_.experts != nullptr;
  const double sum = sum_over_groups(
    mine, {groups_.tp, groups_.pp, over_dp ? groups_.dp : nullptr});
  if (cut_ || groups_.expert_copies == nullptr)
    return sum;
  return sum / groups_.expert_copies->size(); // which count the same
}

// Ranks that have a layer's experts between them compute every pass together.
std::vector<std::int64_t> GradientSync::passes(std::vector<std::int64_t> own) {
  return groups_.experts == nullptr ? own
                                    : most_passes(std::move(own), *groups_.dp);
}

bool GradientSync::another_pass(bool own) {
  return groups_.experts == nullptr ? own : any_wants(own, *groups_.dp);
}

} // namespace troupe::models
