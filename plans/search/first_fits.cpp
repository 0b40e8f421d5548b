#include "plans/search/first_fits.hpp"

namespace troupe::plans::internal {

void FirstFits::reset(const SpacePoint& chosen) {
  chosen_ = chosen;
  ++round_;
}

std::uint32_t FirstFits::of(std::uint32_t call, const SizeGroup& group,
                            std::uint32_t position) {
  auto& known
    = known_[std::size_t{group.number} * instance_->num_devices + position];
  if (known.round == round_)
    return known.first;
  known = {round_, 0};
  chosen_.positions[call] = position;
  for (; known.first < group.options.size(); ++known.first) {
    chosen_.options[call] = group.options[known.first];
    if (instance_->fits(chosen_))
      break;
  }
  chosen_.options[call] = not_chosen;
  return known.first;
}

} // namespace troupe::plans::internal
