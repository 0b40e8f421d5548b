// Rounded weights are their masters, rounded, bit for bit: after each way to
// change the masters, after the optimizer without another rounding, and after
// planes were away.
#include "config/base/float16.hpp"
#include "models/engine/optimizer.hpp"
#include "models/engine/plane_file.hpp"
#include "models/gpu/aten_backend.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/parallel/parameters.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/one_matrix.hpp"
#include "tests/support/models/reference.hpp"
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace troupe::models {
namespace {

using troupe::testing::kPlaneBytes;
using troupe::testing::one_matrix;
using troupe::testing::random_floats;

AtenBackend backend_of_bf16(bool own_kernels) {
  return AtenBackend(at::kCPU,
                     {.bf16_storage = DType::bf16, .own_kernels = own_kernels});
}

/// Returns the first parameter's numbers that are not their masters, rounded.
std::int64_t wrong_numbers(const Parameters& parameters) {
  const at::Tensor masters = parameters.view(0, Plane::weight);
  const at::Tensor rounded = parameters.product_view(0);
  EXPECT_EQ(rounded.scalar_type(), at::kBFloat16);
  const auto* want = masters.const_data_ptr<float>();
  const auto* got = static_cast<const std::uint16_t*>(rounded.const_data_ptr());
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < masters.numel(); ++i)
    wrong += got[i] == f32_to_bf16(want[i]) ? 0 : 1;
  return wrong;
}

/// Overwrites the weights with other numbers.
void fill(std::span<float> weights, std::uint64_t seed) {
  std::ranges::copy(
    random_floats(static_cast<std::int64_t>(weights.size()), seed),
    weights.begin());
}

std::span<float> floats_of(const net::HostWrite& values) {
  return {values.floats(), values.bytes().size() / sizeof(float)};
}

/// Overwrites the weights as a rollback does, from planes in a file.
void roll_back(Parameters& parameters) {
  Parameters other(one_matrix(), /*trainable=*/true);
  fill(other.plane(Plane::weight), 7);
  const int file = ::memfd_create("planes", MFD_CLOEXEC);
  write_planes(file, 3, other, {});
  EXPECT_TRUE(read_planes(file, 3, parameters));
  ::close(file);
}

struct Writer {
  std::string name;
  std::function<void(Parameters&, Backend&)> write;
};

std::vector<Writer> writers() {
  return {
    {"a kernel",
     [](Parameters& p, Backend&) { fill(p.plane(Plane::weight), 2); }},
    {"the host's overwrite",
     [](Parameters& p, Backend&) {
       const auto values = p.overwrite(Plane::weight);
       fill(floats_of(values), 3);
       values.put_back();
     }},
    {"the host's change",
     [](Parameters& p, Backend&) {
       const auto values = p.change(Plane::weight);
       fill(floats_of(values), 4);
       values.put_back();
     }},
    {"a change of an offloaded plane",
     [](Parameters& p, Backend&) {
       p.offload(Plane::weight);
       const auto values = p.change(Plane::weight);
       fill(floats_of(values), 5);
       values.put_back();
       p.reload(Plane::weight);
     }},
    {"an address from before the last rounding",
     [](Parameters& p, Backend& backend) {
       const auto weights = p.plane(Plane::weight);
       p.refresh_rounded(backend);
       fill(weights, 6);
       p.changed();
     }},
    {"a move to a dropped plane",
     [](Parameters& p, Backend&) {
       p.drop(Plane::weight);
       p.expect(Plane::weight);
       const auto values = p.overwrite(Plane::weight);
       fill(floats_of(values), 8);
       values.put_back();
     }},
    {"a rollback", [](Parameters& p, Backend&) { roll_back(p); }},
  };
}

TEST(RoundedWeights, AreTheMastersAfterEveryWayToChangeThem) {
  AtenBackend backend = backend_of_bf16(/*own_kernels=*/true);
  for (const Writer& writer : writers()) {
    Parameters parameters(one_matrix(), /*trainable=*/true, nullptr,
                          backend.storage(DType::bf16));
    fill(parameters.plane(Plane::weight), 1);
    parameters.refresh_rounded(backend);
    EXPECT_EQ(wrong_numbers(parameters), 0) << "before " << writer.name;
    writer.write(parameters, backend);
    EXPECT_NE(wrong_numbers(parameters), 0) << writer.name << " wrote nothing";
    parameters.refresh_rounded(backend);
    EXPECT_EQ(wrong_numbers(parameters), 0) << "after " << writer.name;
  }
}

TEST(RoundedWeights, AreWrittenByTheOptimizerItself) {
  for (const bool own_kernels : {false, true}) {
    AtenBackend backend = backend_of_bf16(own_kernels);
    Parameters parameters(one_matrix(), /*trainable=*/true, nullptr,
                          DType::bf16);
    fill(parameters.plane(Plane::weight), 1);
    fill(parameters.plane(Plane::grad), 2);
    parameters.refresh_rounded(backend);
    constexpr std::int64_t balanced = 1000; // corrections of experts' scores
    const auto all = static_cast<std::int64_t>(kPlaneBytes / sizeof(float));
    OptimizerSettings settings;
    settings.router_bias_rate = 0.5;
    AdamW adam(parameters, settings,
               {{0, all - balanced, 0, true},
                {all - balanced, all, all - balanced, false, true, true}},
               backend);
    const at::Tensor before = parameters.view(0, Plane::weight).clone();
    adam.apply(/*learning_rate=*/0.1, /*scale=*/1, /*step=*/1);
    adam.balance();
    EXPECT_EQ(before.eq(parameters.view(0, Plane::weight)).sum().item<int>(), 0)
      << "all weights change";
    EXPECT_EQ(wrong_numbers(parameters), 0) << own_kernels;
    parameters.changed_by_optimizer();
    parameters.refresh_rounded(backend);
    EXPECT_EQ(wrong_numbers(parameters), 0) << own_kernels;
  }
}

TEST(RoundedWeights, AreWhereTheMastersAre) {
  AtenBackend backend = backend_of_bf16(/*own_kernels=*/true);
  Parameters parameters(one_matrix(), /*trainable=*/false, nullptr,
                        DType::bf16);
  constexpr auto both = kPlaneBytes + kPlaneBytes / 2;
  EXPECT_EQ(parameters.device_bytes(), both);
  EXPECT_EQ(parameters.num_bytes(), both);
  fill(parameters.plane(Plane::weight), 1);
  parameters.offload(Plane::weight);
  EXPECT_EQ(parameters.device_bytes(), 0u);
  parameters.reload(Plane::weight);
  EXPECT_EQ(parameters.device_bytes(), both);
  EXPECT_TRUE(parameters.moves_planes()) << "views are made anew";
  parameters.refresh_rounded(backend);
  EXPECT_EQ(wrong_numbers(parameters), 0);
}

TEST(RoundedWeights, DoNotExistWhereProductsReadFp32) {
  AtenBackend of_fp32(at::kCPU);
  for (Backend* backend : std::vector<Backend*>{&host_backend(), &of_fp32}) {
    Parameters parameters(one_matrix(), /*trainable=*/true, nullptr,
                          backend->storage(DType::bf16));
    parameters.refresh_rounded(*backend);
    EXPECT_EQ(parameters.device_bytes(), 4 * kPlaneBytes);
    EXPECT_EQ(parameters.product_view(0).data_ptr(),
              parameters.view(0, Plane::weight).data_ptr());
    EXPECT_FALSE(parameters.updated_weights().second);
    EXPECT_FALSE(parameters.moves_planes());
  }
}

} // namespace
} // namespace troupe::models
