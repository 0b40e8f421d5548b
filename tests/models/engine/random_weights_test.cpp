// Random weights are written by the device, whose memory the host may not be
// able to address (models_on_late).
#include "models/engine/random_weights.hpp"
#include "models/parallel/parameters.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace troupe::models {
namespace {

constexpr std::int64_t weights_width = 64;
constexpr std::int64_t matrix_rows = 20'000; // more numbers than are drawn

std::vector<ParameterShape> norm_and_matrix() {
  ParameterShape norm{.name = "norm", .rows = weights_width, .vector = true};
  ParameterShape matrix{
    .name = "matrix", .rows = matrix_rows, .cols = weights_width};
  return {norm, matrix};
}

std::vector<float> filled_plane(const Parameters& parameters) {
  const auto read = parameters.read(Plane::weight);
  const auto count = read.bytes().size() / sizeof(float);
  return {read.floats(), read.floats() + count};
}

TEST(RandomWeights, HaveTheSizeOfThoseThatBeginToTrain) {
  auto& backend = testing::backend_under_test();
  Parameters parameters(norm_and_matrix(), /*trainable=*/false,
                        backend.memory());
  fill_weights(parameters, backend);
  const auto plane = filled_plane(parameters);
  const auto of = [&](std::size_t index, std::int64_t count) {
    return std::span(plane).subspan(
      static_cast<std::size_t>(parameters.offset(index)),
      static_cast<std::size_t>(count));
  };
  for (const float number : of(0, weights_width))
    EXPECT_EQ(number, 1.0F);
  double squares = 0, sum = 0;
  const auto matrix = of(1, matrix_rows * weights_width);
  for (const double number : matrix) {
    sum += number;
    squares += number * number;
  }
  const auto count = static_cast<double>(matrix.size());
  EXPECT_NEAR(sum / count, 0, 1e-3);
  EXPECT_NEAR(std::sqrt(squares / count), 1 / std::sqrt(double{weights_width}),
              1e-3);
}

TEST(RandomWeights, RowsThatReadTheBlockAgainAreOthers) {
  auto& backend = testing::backend_under_test();
  Parameters parameters(norm_and_matrix(), /*trainable=*/false,
                        backend.memory());
  fill_weights(parameters, backend);
  const auto plane = filled_plane(parameters);
  const auto first
    = plane.begin() + static_cast<std::ptrdiff_t>(parameters.offset(1));
  std::int64_t same = 0;
  for (std::int64_t row = 1; row < matrix_rows; ++row)
    same
      += std::equal(first, first + weights_width, first + row * weights_width);
  EXPECT_EQ(same, 0);
}

} // namespace
} // namespace troupe::models
