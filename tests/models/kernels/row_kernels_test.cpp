// Kernels over rows that a mixture of experts uses, on our own kernels, on
// libtorch's operations and on a device whose memory the host cannot address.
#include "models/gpu/aten_backend.hpp"
#include "models/kernels/host_backend.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/deferred_backend.hpp"

#include <vector>

namespace troupe::models {
namespace {

constexpr float row_values[] = {1, 2, 3, 4, 5, 6};

class RowKernelsTest : public ::testing::TestWithParam<const char*> {
protected:
  Backend& backend() {
    static AtenBackend aten(at::kCPU);
    const std::string name = GetParam();
    if (name == "Aten")
      return aten;
    return name == "Host" ? host_backend()
                          : troupe::testing::DeferredBackend::instance();
  }
  /// Returns floats of the device with these values.
  float* on_device(const std::vector<float>& values) {
    float* data = workspace_.take(static_cast<std::int64_t>(values.size()));
    backend().write(values.data(), data, values.size() * sizeof(float));
    return data;
  }
  std::vector<float> read(const float* data, std::int64_t count) {
    const auto found = backend().read(data, count);
    return {found.floats(), found.floats() + count};
  }

  Workspace workspace_{backend().memory()};
};

TEST_P(RowKernelsTest, ScatterAddsEachRowTimesItsWeight) {
  const std::vector<std::int64_t> rows{1, 0, 1};
  const std::vector<float> weights{2, 10, 0.5F};
  float* from = on_device({row_values, row_values + 6});
  float* to = on_device({1, 1, 1, 1});
  backend().scatter_rows({rows, 2, 1, weights}, from, to);
  EXPECT_EQ(read(to, 4), (std::vector<float>{31, 41, 5.5F, 8}));
}

TEST_P(RowKernelsTest, WeightsMultiplyTheFactor) {
  const std::vector<std::int64_t> rows{0};
  const std::vector<float> weights{3};
  float* to = on_device({0, 0});
  backend().scatter_rows({rows, 2, 2, weights}, on_device({1, 2}), to);
  EXPECT_EQ(read(to, 2), (std::vector<float>{6, 12}));
}

TEST_P(RowKernelsTest, RowDotsAreThoseOfPairsOfRows) {
  float* a = on_device({row_values, row_values + 6});
  float* dots = on_device({9, 9});
  backend().row_dots({2, 3}, a, on_device({1, 0, 1, 2, 1, 0}), dots);
  EXPECT_EQ(read(dots, 2), (std::vector<float>{4, 13}));
}

TEST_P(RowKernelsTest, ScaleMultipliesEachRowByItsOwnWeight) {
  const std::vector<float> weights{2, 0};
  float* x = on_device({row_values, row_values + 6});
  backend().scale_rows(weights, 3, x);
  EXPECT_EQ(read(x, 6), (std::vector<float>{2, 4, 6, 0, 0, 0}));
}

INSTANTIATE_TEST_SUITE_P(Backends, RowKernelsTest,
                         ::testing::Values("Host", "Aten", "Deferred"),
                         [](const auto& info) { return info.param; });

TEST(FarMemoryDeathTest, AHostThatTouchesDeviceMemoryIsNamed) {
  auto& device = troupe::testing::DeferredBackend::instance();
  auto* data = static_cast<float*>(device.memory()->take(64));
  EXPECT_DEATH(data[3] = 1, "the host touched device memory");
}

} // namespace
} // namespace troupe::models
