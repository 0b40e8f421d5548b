#include "models/engine/random_weights.hpp"

#include "models/kernels/backend.hpp"
#include "models/parallel/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace troupe::models {

namespace {

/// Odd, so that rows of a matrix begin at other places of the block.
constexpr std::int64_t most_drawn = (1 << 20) + 7;

} // namespace

RandomNumbers::RandomNumbers(Backend& backend, std::int64_t most)
  : backend_(backend),
    block_(backend.memory()),
    count_(std::clamp<std::int64_t>(most, 1, most_drawn)) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> drawn(static_cast<std::size_t>(count_));
  for (auto& number : drawn)
    number = normal(random);
  backend_.write(drawn.data(), block_.reserve(count_),
                 drawn.size() * sizeof(float));
}

void RandomNumbers::fill(TypedPtr to, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += count_)
    backend_.copy(block_.data(), to + at, std::min(count_, count - at));
}

void fill_weights(Parameters& parameters, Backend& backend) {
  std::int64_t most = 1;
  for (const auto& shape : parameters.shapes())
    most = std::max(most, shape.num_elements());
  RandomNumbers numbers(backend, most);
  float* const plane = parameters.plane(Plane::weight).data();
  for (std::size_t i = 0; i < parameters.shapes().size(); ++i) {
    const auto& shape = parameters.shapes()[i];
    float* const weights = plane + parameters.offset(i);
    const auto count = shape.num_elements();
    if (shape.vector) {
      backend.fill(weights, count, 1.0F);
      continue;
    }
    numbers.fill(weights, count);
    backend.scale(weights, count,
                  1 / std::sqrt(static_cast<float>(shape.cols)));
  }
  backend.wait();
}

} // namespace troupe::models
