// Tokens that a device draws itself are the host sampler's, under the options
// of the golden samplers, and logits stay on the device (I2).
#include "config/base/error.hpp"
#include "models/generate/device_draw.hpp"
#include "models/generate/generator.hpp"
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/own_kernels.hpp"
#include "models/kernels/host_backend.hpp"

#include "tests/support/models/deferred_backend.hpp"
#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/golden.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <vector>

namespace troupe::models {
namespace {

using troupe::testing::at_step;
using troupe::testing::DeferredBackend;
using troupe::testing::prompt_rows;
using troupe::testing::Response;
using troupe::testing::responses_of;
using troupe::testing::SmallModel;

constexpr std::int64_t drawn_vocab = 131; // of the small model

GenerateOptions drawing_options() {
  GenerateOptions options;
  options.max_new_tokens = 24;
  options.stop_ids = {7};
  options.seed = 11;
  return options;
}

GenerateOptions golden_sampler(const std::string& name) {
  const nlohmann::json params = testing::read_golden_meta(
    testing::golden_folder() / "samplers" / name)["params"];
  GenerateOptions options = drawing_options();
  options.temperature = params.value("temperature", 1.0);
  options.top_k = params.value("top_k", std::int64_t{0});
  options.top_p = params.value("top_p", 1.0);
  options.min_p = params.value("min_p", 0.0);
  options.repetition_penalty = params.value("repetition_penalty", 1.0);
  return options;
}

std::vector<Response> drawn_responses(Backend& backend,
                                      const GenerateOptions& options) {
  const SmallModel model;
  Generator generator(model.shape, model.weights, {}, backend);
  return responses_of(generator.run(
    prompt_rows({{1, 2, 3}, {4}, {5, 6, 8, 9, 10}, {14, 15}, {16, 1}}), options,
    at_step(5)));
}

AtenBackend& own_aten() {
  static AtenBackend aten(at::kCPU, {.own_kernels = true});
  return aten;
}

std::atomic<int> aten_draws = 0;

/// Returns how often kernels of our own drew during `work`, once per pass.
template <class Work>
int draws_of_aten(const Work& work) {
  aten_draws = 0;
  gpu::observe_kernels([](const gpu::KernelCost& cost) {
    aten_draws += std::string(cost.name) == "draw_token" ? 1 : 0;
  });
  work();
  gpu::observe_kernels(nullptr);
  return aten_draws;
}

template <class Work>
int draws_of_late(const Work& work) {
  const int before = DeferredBackend::instance().drawn();
  work();
  return DeferredBackend::instance().drawn() - before;
}

class DeviceDraw : public ::testing::TestWithParam<std::string> {};

TEST_P(DeviceDraw, HasTheTokensOfTheHostsSampler_I2) {
  TROUPE_NEEDS_GOLDEN();
  for (const auto logprobs :
       {ResponseLogprobs::unfiltered, ResponseLogprobs::sampled}) {
    GenerateOptions options = golden_sampler(GetParam());
    options.record.logprobs = logprobs;
    const bool by_device = options.repetition_penalty == 1.0;
    const auto want = drawn_responses(host_backend(), options);
    std::vector<Response> aten;
    std::vector<Response> late;
    const int of_aten
      = draws_of_aten([&] { aten = drawn_responses(own_aten(), options); });
    const int of_late = draws_of_late(
      [&] { late = drawn_responses(DeferredBackend::instance(), options); });
    expect_near_responses(aten, want);
    EXPECT_EQ(late, want);
    EXPECT_EQ(of_aten > 0, by_device) << of_aten;
    EXPECT_EQ(of_late > 0, by_device) << of_late;
  }
}

INSTANTIATE_TEST_SUITE_P(Samplers, DeviceDraw,
                         ::testing::ValuesIn(testing::golden_cases("samplers")),
                         [](const auto& entry) {
                           std::string name = entry.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceDraw);

TEST(DeviceDraws, AreLeftToTheHostWhereOptionsReadMoreThanTheLogits) {
  const auto by_device = [](const GenerateOptions& options) {
    return device_filters(options, drawn_vocab).has_value();
  };
  GenerateOptions options = drawing_options();
  EXPECT_TRUE(by_device(options));
  options.temperature = 0.5;
  options.top_k = 9;
  options.top_p = 0.9;
  options.min_p = 0.1;
  options.record = {ResponseLogprobs::sampled, /*experts=*/true};
  EXPECT_TRUE(by_device(options));
  EXPECT_FALSE(device_filters(options, DrawRows::most_vocab + 1));
  options.record.logprobs = ResponseLogprobs::masked;
  EXPECT_FALSE(by_device(options));
  options = drawing_options();
  options.repetition_penalty = 1.1;
  EXPECT_FALSE(by_device(options));
  options = drawing_options();
  options.min_new_tokens = 3;
  EXPECT_FALSE(by_device(options));
  options.stop_ids.clear(); // nothing is banned
  EXPECT_TRUE(by_device(options));
}

TEST(DeviceDraws, ATemperatureOfZeroIsGreedyWithLogprobsAtOne) {
  GenerateOptions options = drawing_options();
  options.temperature = 0;
  const auto filters = device_filters(options, drawn_vocab);
  ASSERT_TRUE(filters);
  EXPECT_TRUE(filters->greedy);
  EXPECT_EQ(filters->temperature, 1);
  expect_near_responses(drawn_responses(own_aten(), options),
                        drawn_responses(host_backend(), options));
}

TEST(DeviceDraws, OfLogitsThatAreNotFiniteFailAsTheHosts) {
  SmallModel model;
  model.parameters->plane(Plane::weight)[0]
    = std::numeric_limits<float>::quiet_NaN();
  const auto failure = [&](Backend& backend) {
    Generator generator(model.shape, model.weights, {}, backend);
    try {
      generator.run(prompt_rows({{0, 1}, {2}}), drawing_options(), at_step(5));
    } catch (const FailureError& error) {
      EXPECT_EQ(error.failure().code, Errc::numerics);
      return std::string(error.what());
    }
    return std::string("none");
  };
  const std::string want = failure(host_backend());
  EXPECT_NE(want, "none");
  EXPECT_EQ(failure(own_aten()), want);
  EXPECT_EQ(failure(DeferredBackend::instance()), want);
}

} // namespace
} // namespace troupe::models
