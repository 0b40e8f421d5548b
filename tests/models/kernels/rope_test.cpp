// Rotary positions against loops in double, and in a whole model against its
// slow reference.
#include "models/engine/engine.hpp"
#include "models/kernels/rope.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/slow_model.hpp"
#include <nlohmann/json.hpp>

#include <cmath>

namespace troupe::models {
namespace {

using troupe::testing::random_sequences;
using troupe::testing::read_text;
using troupe::testing::SlowModel;
using troupe::testing::TempFolder;
using troupe::testing::write_random_model;
using troupe::testing::write_text;

ModelShape linear_shape() {
  auto shape = troupe::testing::small_shape();
  shape.rope_scaling = "linear";
  shape.rope_factor = 4;
  return shape;
}

TEST(RopeTable, LinearScalingDividesPositions) {
  const auto shape = linear_shape();
  RopeTable table(shape);
  table.grow(128);
  for (std::int64_t position = 0; position < 128; ++position)
    for (std::int64_t i = 0; i < table.num_frequencies(); ++i) {
      const double angle
        = double(position) / 4
          * std::pow(10000.0, -2.0 * double(i) / double(shape.head_dim));
      ASSERT_NEAR(table.cos(position)[i], std::cos(angle), 1e-5);
      ASSERT_NEAR(table.sin(position)[i], std::sin(angle), 1e-5);
    }
}

// Returns the largest difference of log-probabilities to the slow model's.
double difference(const std::filesystem::path& folder,
                  const ModelShape& slow_shape) {
  Engine engine(troupe::testing::trained_actor(folder));
  engine.load_weights();
  const auto rows = random_sequences(3, 75, 120, 6);
  RunContext context;
  const auto out = engine.infer("logprobs", rows, context);
  const SlowModel slow(folder, slow_shape, at::kDouble);
  const auto ids = rows.at("sequence_ids").as<std::int32_t>();
  const auto mask = rows.at("loss_mask").as<std::uint8_t>(); // others are 0
  const auto found = out.at("logprobs").as<float>();
  double worst = 0;
  std::size_t at = 0;
  for (const auto length : rows.at("sequence_ids").lengths) {
    const auto expected = slow.logprobs(ids.subspan(at, length)).contiguous();
    for (std::size_t t = 1; t < length; ++t)
      if (mask[at + t] != 0)
        worst = std::max(worst,
                         std::abs(double(found[at + t])
                                  - expected.const_data_ptr<double>()[t - 1]));
    at += length;
  }
  return worst;
}

TEST(RopeScaling, LinearScalingEqualsTheSlowModelsLogProbabilities) {
  const TempFolder folder;
  write_random_model(folder.path(), linear_shape(), 4);
  EXPECT_LT(difference(folder.path(), linear_shape()), 1e-4);
  EXPECT_GT(difference(folder.path(), troupe::testing::small_shape()), 1e-2)
    << "the sequences are too short to tell";
  // as spelt by transformers before 4.43, and from 5 on
  auto config = nlohmann::json::parse(read_text(folder / "config.json"));
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  write_text(folder / "config.json", config.dump());
  EXPECT_LT(difference(folder.path(), linear_shape()), 1e-4);
  config.erase("rope_scaling");
  config["rope_parameters"]
    = {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 10000.0}};
  write_text(folder / "config.json", config.dump());
  EXPECT_LT(difference(folder.path(), linear_shape()), 1e-4);
}

} // namespace
} // namespace troupe::models
