#include "models/sync/zero3_flow.hpp"

#include "config/model/product_operands.hpp"
#include "models/parallel/ordered_collectives.hpp"
#include "net/collectives/collectives.hpp"

#include <algorithm>
#include <utility>

namespace troupe::models {

Zero3Flow::Zero3Flow(const LocalModel& part, Parameters& parameters,
                     Backend& backend)
  : parameters_(parameters),
    backend_(backend),
    last_layer_(part.whole.num_layers),
    first_stage_(part.first_stage()) {
  for (const plans::GatherBuffer& window : part.windows.units) {
    Unit& unit = units_.emplace_back(TpSharedGrads(backend));
    unit.window = window;
    unit.unrounded = UnroundedGather(part, window, part.windows.offsets);
    for (std::size_t i = window.first_box; i < window.end_box; ++i) {
      unit.shared.add(part, part.boxes[i], part.windows.offsets[i]);
      unit.over_stages |= part.boxes[i].over_stages;
    }
  }
  for (const plans::Box& box : part.held.boxes) {
    const PartBox& owner = part.owner(box.parameter);
    const std::size_t i = part.box_index(owner);
    const auto unit = std::ranges::find_if(
      units_, [&](const Unit& one) { return i < one.window.end_box; });
    unit->own.push_back(
      {static_cast<std::int64_t>(box.offset_bytes / sizeof(float)),
       part.windows.offsets[i] + owner.place_of(box), box.num_elements(),
       read_by_products(part.local_parameters[i])});
  }
  for (std::size_t place = 0; place < num_places; ++place)
    unrounded_.emplace_back(backend.memory());
}

void Zero3Flow::begin(const Groups& groups) {
  background_.emplace(
    [this] { backend_.enter(); }); // a failed one keeps its failure
  groups_ = groups;
  streams_ = groups.dp->on_streams(parameters_.window(Plane::weight).data());
  std::ranges::fill(weights_, Place{});
  std::ranges::fill(gradients_, Place{});
}

std::vector<std::int64_t> Zero3Flow::passes(std::vector<std::int64_t> own) {
  return most_passes(std::move(own), *groups_.dp);
}

bool Zero3Flow::another_pass(bool own) {
  background_->wait();
  return any_wants(own, *groups_.dp);
}

std::optional<std::size_t> Zero3Flow::find(std::int64_t layer) const {
  const auto found = std::ranges::find_if(
    units_, [&](const Unit& one) { return one.window.layer == layer; });
  if (found == units_.end())
    return std::nullopt;
  return static_cast<std::size_t>(found - units_.begin());
}

bool Zero3Flow::tied() const {
  return units_.front().window.place > 1;
}

void Zero3Flow::before_forward(std::int64_t layer) {
  const auto unit = find(layer);
  if (!unit)
    return;
  await(*unit);
  if (layer == last_layer_ && tied())
    await(0);
  if (*unit + 1 < units_.size())
    bring(*unit + 1);
}

void Zero3Flow::before_backward(std::int64_t layer) {
  const auto unit = find(layer);
  if (!unit)
    return;
  open(*unit);
  if (layer == last_layer_ && tied()) {
    open(0);
    await(0);
  }
  if (layer < 0)
    return; // no gradient needs its weights
  await(*unit);
  if (*unit > 0 && units_[*unit - 1].window.layer >= 0)
    bring(*unit - 1);
}

void Zero3Flow::after_backward(std::int64_t layer) {
  const auto unit = find(layer);
  if (!unit)
    return;
  scatter(*unit);
  if (layer == last_layer_ && tied() && !first_stage_)
    scatter(0);
}

void Zero3Flow::bring(std::size_t index) {
  const Unit& unit = units_[index];
  Place& place = weights_[unit.window.place];
  if (place.unit == index)
    return;
  if (streams_ == nullptr) {
    place = {index, background_->run([this, &unit] { gather_own(unit); })};
    return;
  }
  settle_weights(place); // one that nobody came for
  copy_own(unit);
  place = {.unit = index, .under_way = &unit};
  for_gathers(unit, [&](TypedPtr all, std::int64_t count) {
    place.call = streams_->all_gather(
      (all + count * groups_.dp->rank()).data(), all.data(),
      static_cast<std::size_t>(count), all.type(), "parameters",
      net::StreamOrder::beside); // after the one before
  });
}

void Zero3Flow::await(std::size_t index) {
  bring(index);
  Place& place = weights_[units_[index].window.place];
  background_->wait(place.job);
  settle_weights(place);
}

void Zero3Flow::settle_weights(Place& place) {
  if (place.under_way == nullptr)
    return;
  const Unit& unit = *std::exchange(place.under_way, nullptr);
  streams_->join(place.call);
  take_unrounded(unit);
}

bool Zero3Flow::has_unrounded(const Unit& unit) const {
  return parameters_.has_rounded() && unit.unrounded.count() > 0;
}

void Zero3Flow::copy_own(const Unit& unit) {
  const float* held = std::as_const(parameters_).plane(Plane::weight).data();
  float* window = parameters_.window(Plane::weight).data();
  const TypedPtr for_products = parameters_.product_window();
  for (const Piece& piece : unit.own)
    backend_.copy(held + piece.held,
                  (piece.for_products ? for_products : window) + piece.window,
                  piece.count);
  if (has_unrounded(unit))
    unit.unrounded.pack(
      window, groups_.dp->rank(),
      unrounded_[unit.window.place].reserve(unit.unrounded.room()), backend_);
}

template <class Gather>
void Zero3Flow::for_gathers(const Unit& unit, const Gather& gather) {
  gather(parameters_.product_window() + unit.window.begin, unit.window.run);
  if (has_unrounded(unit))
    gather(unrounded_[unit.window.place].data(), unit.unrounded.count());
}

void Zero3Flow::take_unrounded(const Unit& unit) {
  if (has_unrounded(unit))
    unit.unrounded.unpack(unrounded_[unit.window.place].data(),
                          parameters_.window(Plane::weight).data(), backend_);
}

void Zero3Flow::gather_own(const Unit& unit) {
  copy_own(unit);
  backend_.wait();
  for_gathers(unit, [&](TypedPtr all, std::int64_t count) {
    groups_.dp->all_gather((all + count * groups_.dp->rank()).data(),
                           all.data(), static_cast<std::size_t>(count),
                           all.type(), "parameters");
  });
  take_unrounded(unit);
}

void Zero3Flow::open(std::size_t index) {
  const Unit& unit = units_[index];
  Place& place = gradients_[unit.window.place];
  if (place.unit == index)
    return;
  background_->wait(place.job);
  settle_gradients(place);
  place.unit = index;
  backend_.fill(parameters_.window(Plane::grad).data() + unit.window.begin,
                unit.window.run * groups_.dp->size(), 0.0F);
}

void Zero3Flow::scatter(std::size_t index) {
  Unit& unit = units_[index];
  if (groups_.tp != nullptr)
    unit.shared.sum(parameters_.window(Plane::grad).data(), *groups_.tp);
  Place& place = gradients_[unit.window.place];
  if (streams_ == nullptr) {
    place = {std::nullopt, background_->run([this, &unit] { sum_own(unit); })};
    return;
  }
  float* all = parameters_.window(Plane::grad).data() + unit.window.begin;
  const net::StreamTicket call = streams_->reduce_scatter_sum(
    all, all + unit.window.run * groups_.dp->rank(),
    static_cast<std::size_t>(unit.window.run), DType::f32, "gradients",
    net::StreamOrder::beside);
  place = {.unit = std::nullopt, .under_way = &unit, .call = call};
}

void Zero3Flow::settle_gradients(Place& place) {
  const Unit* unit = std::exchange(place.under_way, nullptr);
  if (unit == nullptr)
    return;
  streams_->join(place.call);
  add_own(*unit);
}

void Zero3Flow::sum_own(const Unit& unit) {
  backend_.wait();
  float* all = parameters_.window(Plane::grad).data() + unit.window.begin;
  groups_.dp->reduce_scatter_sum(
    all, all + unit.window.run * groups_.dp->rank(),
    static_cast<std::size_t>(unit.window.run), DType::f32, "gradients");
  add_own(unit);
}

void Zero3Flow::add_own(const Unit& unit) {
  const float* window = parameters_.window(Plane::grad).data();
  float* held = parameters_.plane(Plane::grad).data();
  for (const Piece& piece : unit.own)
    backend_.add(held + piece.held, window + piece.window, held + piece.held,
                 piece.count);
}

void Zero3Flow::finish() {
  background_->wait();
  for (Place& place : gradients_)
    settle_gradients(place);
  if (groups_.ends == nullptr)
    return;
  float* held = parameters_.plane(Plane::grad).data();
  for (const Unit& unit : units_)
    for (const Piece& piece : unit.own)
      if (unit.over_stages)
        sum_in_order(*groups_.ends, backend_, held + piece.held, piece.count,
                     "tied gradients");
}

void Zero3Flow::weights_changed() {
  std::ranges::fill(weights_, Place{});
}

double Zero3Flow::sum_over_parts(double mine) {
  return sum_over_groups(mine, {groups_.tp, groups_.pp, groups_.dp});
}

} // namespace troupe::models
