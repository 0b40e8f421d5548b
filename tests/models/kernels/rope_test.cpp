// Rotary positions against loops in double, and in a whole model against its
// slow reference.
#include "models/engine/engine.hpp"
#include "models/kernels/host_backend.hpp"
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
  shape.rope.scaling = RopeScaling::linear;
  shape.rope.factor = 4;
  return shape;
}

TEST(RopeTable, LinearScalingDividesPositions) {
  const auto shape = linear_shape();
  RopeTables tables(shape);
  tables.grow(128);
  const RopeTable& table = *tables.of(LayerRope::global);
  for (std::int64_t position = 0; position < 128; ++position)
    for (std::int64_t i = 0; i < table.num_frequencies(); ++i) {
      const double angle
        = double(position) / 4
          * std::pow(10000.0, -2.0 * double(i) / double(shape.head_dim));
      ASSERT_NEAR(table.cos(position)[i], std::cos(angle), 1e-5);
      ASSERT_NEAR(table.sin(position)[i], std::sin(angle), 1e-5);
    }
}

double dot_product(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += double(a[i]) * double(b[i]);
  return sum;
}

// <rotate(x), y> = <x, rotate backwards(y)>, with a factor too.
TEST(Rope, RotatingBackwardsIsTheGradientOfAPartThatIsScaled) {
  constexpr std::int64_t tokens = 3;
  constexpr std::int64_t head_dim = 8;
  const RopeShape shape{tokens, 2 * head_dim, 2, head_dim};
  RopeTable table({1.0F, 0.1F, 0.01F}, 1.3F, host_backend()); // 6 of 8 rotate
  table.grow(16);
  const std::vector<std::int32_t> positions{0, 5, 11};
  std::vector<float> x(tokens * 2 * head_dim);
  std::vector<float> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(float(i));
    y[i] = std::cos(3 * float(i));
  }
  auto rotated = x;
  rope(shape, table, positions.data(), rotated.data());
  auto back = y;
  rope(shape, table, positions.data(), back.data(), /*backwards=*/true);
  EXPECT_NEAR(dot_product(rotated, y), dot_product(x, back), 1e-5);
  for (std::int64_t row = 0; row < 2 * tokens; ++row) // heads of all tokens
    for (std::int64_t i = 6; i < head_dim; ++i)
      EXPECT_EQ(rotated[std::size_t(row * head_dim + i)],
                x[std::size_t(row * head_dim + i)]);
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
