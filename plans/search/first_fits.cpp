#include "plans/search/first_fits.hpp"

#include <limits>
#include <utility>

namespace troupe::plans::internal {

void FirstFits::reset(const SpacePoint& chosen,
                      std::vector<std::uint32_t> moved) {
  chosen_ = chosen;
  moved_ = std::move(moved);
  ++round_;
}

FirstFits::Fit FirstFits::of(std::uint32_t call, const SizeGroup& group,
                             std::uint32_t position) {
  auto& known
    = known_[std::size_t{group.number} * instance_->num_devices + position];
  if (known.round == round_)
    return known.fit;
  chosen_.positions[call] = position;
  known = {round_, find(call, group)};
  chosen_.options[call] = not_chosen;
  return known.fit;
}

FirstFits::Fit FirstFits::find(std::uint32_t call, const SizeGroup& group) {
  const auto& options = instance_->calls[call].options;
  Fit fit{.least_s = std::numeric_limits<double>::infinity()};
  for (; fit.first < group.options.size(); ++fit.first) {
    chosen_.options[call] = group.options[fit.first];
    if (instance_->fits(chosen_))
      break;
  }
  for (auto k = fit.first; k < group.options.size(); ++k) {
    const auto seconds = options[group.options[k]].seconds;
    if (seconds >= fit.least_s)
      break; // the rest is slower without anything added
    chosen_.options[call] = group.options[k];
    fit.least_s = std::min(fit.least_s, seconds + least_move_s(call, chosen_));
  }
  return fit;
}

} // namespace troupe::plans::internal
