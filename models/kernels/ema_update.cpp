#include "models/kernels/ema_update.hpp"

#include "config/base/error.hpp"

namespace troupe::models {

void ema_update(std::span<float> target, std::span<const float> incoming,
                double decay) {
  TROUPE_CHECK(target.size() == incoming.size(), "an EMA update of unequal "
                                                 "lengths");
  const double own = static_cast<float>(decay);
  const double rest = static_cast<float>(1 - own);
  for (std::size_t i = 0; i < target.size(); ++i)
    target[i] = static_cast<float>(own * target[i] + rest * incoming[i]);
}

} // namespace troupe::models
