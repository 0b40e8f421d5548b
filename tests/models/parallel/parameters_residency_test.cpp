// Planes that are offloaded: their memory is really released, and their values
// return.
#include "config/base/error.hpp"
#include "models/parallel/parameters.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/one_matrix.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::models {
namespace {

using troupe::testing::kPlaneBytes;
using troupe::testing::one_matrix;

void fill(Parameters& parameters, Plane plane, float value) {
  std::ranges::fill(parameters.plane(plane), value);
}

TEST(ParametersResidency,
     AnOffloadedPlaneLeavesItsDeviceAndReturnsToItsAddress) {
  Parameters parameters(one_matrix(), /*trainable=*/true);
  fill(parameters, Plane::m, 3);
  fill(parameters, Plane::v, 4);
  const auto* address = parameters.plane(Plane::m).data();
  const auto all_bytes = parameters.device_bytes();
  EXPECT_EQ(all_bytes, 4 * kPlaneBytes);
  const auto& device = parameters.published(Plane::m); // none offloaded yet
  EXPECT_EQ(device.resident_bytes(), kPlaneBytes);
  parameters.offload(Plane::m);
  EXPECT_EQ(device.resident_bytes(), 0u) << "the pages are really free";
  EXPECT_EQ(parameters.device_bytes(), all_bytes - kPlaneBytes);
  parameters.reload(Plane::m);
  EXPECT_EQ(parameters.plane(Plane::m).data(), address);
  EXPECT_EQ(parameters.plane(Plane::m).back(), 3);
  EXPECT_EQ(parameters.plane(Plane::v).back(), 4);
  EXPECT_EQ(parameters.device_bytes(), all_bytes);
}

TEST(ParametersResidency, OthersReadTheHostCopyOfAnOffloadablePlane) {
  Parameters parameters(one_matrix(), /*trainable=*/false);
  fill(parameters, Plane::weight, 1);
  parameters.offload(Plane::weight);
  const auto& published = parameters.published(Plane::weight);
  const auto last = [&] {
    return reinterpret_cast<const float*>(
      published.data())[kPlaneBytes / sizeof(float) - 1];
  };
  EXPECT_EQ(last(), 1);
  parameters.reload(Plane::weight);
  fill(parameters, Plane::weight, 2);
  parameters.changed();
  EXPECT_EQ(last(), 1) << "until the training is over";
  parameters.offload(Plane::weight);
  EXPECT_EQ(last(), 2);
}

TEST(ParametersResidency, ADroppedPlaneHasNoMemoryUntilItIsWritten) {
  Parameters parameters(one_matrix(), /*trainable=*/false);
  fill(parameters, Plane::weight, 1);
  const auto& device = parameters.published(Plane::weight);
  parameters.drop(Plane::weight);
  EXPECT_EQ(device.resident_bytes(), 0u);
  EXPECT_EQ(parameters.device_bytes(), 0u);
  EXPECT_THROW(parameters.reload(Plane::weight), InvariantError);
  parameters.expect(Plane::weight);
  fill(parameters, Plane::weight, 5);
  EXPECT_EQ(parameters.device_bytes(), kPlaneBytes);
}

TEST(ParametersResidency, GradientsAndMomentsExistForTrainedRolesOnly) {
  Parameters parameters(one_matrix(), /*trainable=*/false);
  EXPECT_THROW(parameters.offload(Plane::m), InvariantError);
}

} // namespace
} // namespace troupe::models
