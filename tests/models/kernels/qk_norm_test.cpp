// Norms of all heads of a token together, whose heads may be on several
// devices: each sums over its own, and the total is that of one device (I1).
#include "models/kernels/qk_norm.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/reference.hpp"

#include <cmath>
#include <vector>

namespace troupe::models {
namespace {

using Floats = std::vector<float>;

constexpr std::int64_t num_rows = 70;
constexpr std::int64_t width = 24;
constexpr float eps = 1e-5F;

/// Columns [first, first + count) of rows of `width`.
Floats columns(const Floats& rows, std::int64_t first, std::int64_t count) {
  Floats part;
  for (std::int64_t t = 0; t < num_rows; ++t)
    for (std::int64_t i = 0; i < count; ++i)
      part.push_back(rows[static_cast<std::size_t>(t * width + first + i)]);
  return part;
}

struct Normed {
  Floats y, dx, d_weight;
};

/// Norms rows of the width in double precision.
Normed reference(const Floats& x, const Floats& weight, const Floats& dy) {
  Normed found{x, x, Floats(static_cast<std::size_t>(width))};
  std::vector<double> d_weight(static_cast<std::size_t>(width));
  for (std::int64_t t = 0; t < num_rows; ++t) {
    const auto row = static_cast<std::size_t>(t * width);
    double squares = 0, dot = 0;
    for (std::size_t i = 0; i < width; ++i) {
      squares += double{x[row + i]} * x[row + i];
      dot += double{dy[row + i]} * weight[i] * x[row + i];
    }
    const double rstd = 1 / std::sqrt(squares / width + eps);
    for (std::size_t i = 0; i < width; ++i) {
      found.y[row + i] = static_cast<float>(x[row + i] * rstd * weight[i]);
      found.dx[row + i]
        = static_cast<float>(dy[row + i] * weight[i] * rstd
                             - x[row + i] * dot * rstd * rstd * rstd / width);
      d_weight[i] += dy[row + i] * x[row + i] * rstd;
    }
  }
  for (std::size_t i = 0; i < width; ++i)
    found.d_weight[i] = static_cast<float>(d_weight[i]);
  return found;
}

class NormOfAllHeads : public ::testing::TestWithParam<std::vector<int>> {};

TEST_P(NormOfAllHeads, IsThatOfOneDeviceWhereverTheHeadsAre_I1) {
  Backend& backend = troupe::testing::backend_under_test();
  const Floats x = testing::random_floats(num_rows * width, 1);
  const Floats weight = testing::random_floats(width, 2);
  const Floats dy = testing::random_floats(num_rows * width, 3);
  const Normed want = reference(x, weight, dy);
  Floats squares(num_rows), dots(num_rows);
  std::int64_t first = 0;
  for (const int count : GetParam()) { // each device's part of the sums
    const Floats mine = columns(x, first, count);
    const Floats d_mine = columns(dy, first, count);
    Floats sums(num_rows), products(num_rows);
    const QkNormShape shape{num_rows, count, 1, count, eps};
    backend.head_sums(shape, {mine.data(), mine.data(), count, count}, nullptr,
                      sums.data());
    backend.head_sums(shape, {d_mine.data(), mine.data(), count, count},
                      weight.data() + first, products.data());
    backend.wait();
    for (std::size_t t = 0; t < num_rows; ++t) {
      squares[t] += sums[t];
      dots[t] += products[t];
    }
    first += count;
  }
  first = 0;
  for (const int count : GetParam()) {
    Floats y = columns(x, first, count), dx = columns(dy, first, count);
    Floats raw(y.size()), d_weight(static_cast<std::size_t>(count));
    const QkNormShape shape{num_rows,
                            count,
                            1,
                            count,
                            eps,
                            NormKind::rms,
                            {squares.data(), dots.data(), width}};
    Workspace workspace;
    backend.qk_norm(shape, weight.data() + first, y.data(), raw.data());
    backend.qk_norm_backward(shape, weight.data() + first, raw.data(),
                             dx.data(), d_weight.data(), workspace);
    backend.wait();
    const Floats want_y = columns(want.y, first, count);
    const Floats want_dx = columns(want.dx, first, count);
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(y[i], want_y[i], 1e-5) << i;
      ASSERT_NEAR(dx[i], want_dx[i], 1e-5) << i;
    }
    for (std::size_t i = 0; i < d_weight.size(); ++i)
      ASSERT_NEAR(d_weight[i],
                  want.d_weight[static_cast<std::size_t>(first) + i], 1e-4);
    first += count;
  }
}
INSTANTIATE_TEST_SUITE_P(Parts, NormOfAllHeads,
                         ::testing::Values(std::vector{24}, std::vector{12, 12},
                                           std::vector{8, 8, 8}));

} // namespace
} // namespace troupe::models
