// Offload, reload and drop of an engine's planes.
#include "models/engine/engine_impl.hpp"

namespace troupe::models {

void Engine::offload(std::span<const Plane> planes) {
  for (const auto plane : planes)
    impl_->parameters.offload(plane);
}

void Engine::reload(std::span<const Plane> planes) {
  for (const auto plane : planes)
    impl_->parameters.reload(plane);
  impl_->views_moved();
}

void Engine::drop_weights() {
  impl_->parameters.drop(Plane::weight);
}

void Engine::expect_weights() {
  impl_->parameters.expect(Plane::weight);
  impl_->views_moved();
}

std::uint64_t Engine::device_bytes() const {
  return impl_->parameters.device_bytes();
}

} // namespace troupe::models
