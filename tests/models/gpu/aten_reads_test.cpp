// Numbers of a device that the host reads after it has launched more work.
#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/backend.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"

#include <vector>

namespace troupe::models {
namespace {

TEST(BackendKernels, AReadForLaterHasTheNumbersOfItsTime) {
  Backend& backend = troupe::testing::backend_under_test();
  backend.enter();
  AlignedFloats x(backend.memory());
  x.reserve(40);
  backend.fill(x.data(), 40, 1.0F);
  const auto first = backend.read_later(x.data(), 40);
  backend.fill(x.data(), 40, 2.0F);
  const auto second = backend.read_later(x.data() + 8, 2);
  backend.fill(x.data(), 40, 3.0F);
  const auto floats = [](PendingRead& read) {
    const auto bytes = read.bytes();
    const auto* data = reinterpret_cast<const float*>(bytes.data());
    return std::vector<float>(data, data + bytes.size() / sizeof(float));
  };
  EXPECT_EQ(floats(*second), std::vector<float>(2, 2.0F));
  EXPECT_EQ(floats(*first), std::vector<float>(40, 1.0F));
}

} // namespace
} // namespace troupe::models
