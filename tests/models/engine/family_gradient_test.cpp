// Gradients of every family against transformers' autograd: norm and a dot
// product of each parameter's gradient (data/make_family_gradients.py).
#include "models/engine/engine.hpp"
#include "models/hf/stored_parameters.hpp"
#include "models/parallel/parameters.hpp"
#include "models/transformer/weights.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/golden.hpp"
#include "tests/support/models/golden_loss.hpp"
#include "tests/support/places.hpp"
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <numeric>

namespace troupe::models {
namespace {

nlohmann::json reference_gradients() {
  std::ifstream file(support::second_opinion()
                       ? support::source_folder()
                           / "tests/models/cases/family_gradients.json"
                       : support::golden_folder() / "family_gradients.json");
  return nlohmann::json::parse(file).at("cases");
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

class FamilyGradient : public ::testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    TROUPE_NEEDS_GOLDEN();
    folder_ = troupe::testing::golden_folder() / "models" / GetParam();
    make_engine(DType::f32);
    loss_ = std::make_unique<troupe::testing::GoldenLoss>(folder_);
  }

  void make_engine(DType operands) {
    Engine::Spec spec;
    spec.backend = &troupe::testing::backend_under_test();
    spec.folder = folder_;
    spec.role = GetParam();
    spec.trainable = true;
    spec.dtype = operands;
    engine_ = std::make_unique<Engine>(spec);
    engine_->load_weights();
  }

  /// Returns the loss; writes gradients to the grad plane.
  double run(bool recompute, bool keep_logits) {
    const Weights grads
      = weights_of(engine_->shape(), engine_->parameters(), Plane::grad);
    return loss_->run(*engine_, grads, {recompute, keep_logits});
  }

  std::vector<float> gradient() {
    const auto plane = engine_->parameters().read(Plane::grad);
    return {plane.floats(),
            plane.floats() + plane.bytes().size() / sizeof(float)};
  }

  std::filesystem::path folder_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<troupe::testing::GoldenLoss> loss_;
};

TEST_P(FamilyGradient, InBf16IsNearFp32_I1) {
  const double loss = run(false, true);
  const std::vector<float> whole = gradient();
  make_engine(DType::bf16);
  const double rounded_loss = run(false, true);
  const std::vector<float> rounded = gradient();
  const double norm = std::sqrt(dot(whole, whole));
  const double rounded_norm = std::sqrt(dot(rounded, rounded));
  EXPECT_NEAR(rounded_loss, loss, 2e-3 * std::abs(loss));
  EXPECT_NE(rounded_loss, loss) << "computed in fp32?";
  // The host's attention rounds queries and keys of fp32 activations, which the
  // sharp softmax of Gemma 3 turns into 12 %.
  if (engine_->transformer().backend->storage(DType::bf16) == DType::bf16) {
    EXPECT_NEAR(rounded_norm, norm, 2e-2 * norm);
  }
  EXPECT_GT(dot(whole, rounded), 0.99 * norm * rounded_norm);
}

TEST_P(FamilyGradient, EqualsTransformersForEveryParameter) {
  const auto reference = reference_gradients().at(GetParam());
  EXPECT_NEAR(run(false, true), reference.at("loss").get<double>(), 1e-4);
  const Parameters& parameters = engine_->parameters();
  std::vector<ParameterValues> values;
  const auto plane = parameters.read(Plane::grad);
  for (std::size_t i = 0; i < parameters.shapes().size(); ++i) {
    const float* data = plane.floats() + parameters.offset(i);
    const ParameterShape& shape = parameters.shapes()[i];
    if (shape.balances)
      continue; // a buffer without a gradient in transformers
    values.push_back(
      {&shape, std::as_bytes(std::span<const float>(
                 data, static_cast<std::size_t>(shape.num_elements())))});
  }
  const FileTensors files(values, DType::f32);
  EXPECT_EQ(files.tensors().size(), reference.at("gradients").size());
  for (const TensorToStore& tensor : files.tensors()) {
    ASSERT_TRUE(reference.at("gradients").contains(tensor.name)) << tensor.name;
    const auto& want = reference.at("gradients").at(tensor.name);
    const auto* g = reinterpret_cast<const float*>(tensor.data.data());
    double squares = 0;
    double dot = 0;
    for (std::size_t i = 0; i < tensor.data.size() / sizeof(float); ++i) {
      squares += double{g[i]} * g[i];
      dot += g[i] * std::cos(0.37 * static_cast<double>(i));
    }
    const double norm = want[0];
    EXPECT_NEAR(std::sqrt(squares), norm, 1e-5 + 1e-4 * norm) << tensor.name;
    EXPECT_NEAR(dot, want[1].get<double>(), 1e-5 + 2e-4 * norm) << tensor.name;
  }
}

TEST_P(FamilyGradient, RecomputingGivesTheSameBits) {
  run(false, true);
  const auto kept = gradient();
  run(true, true);
  EXPECT_EQ(gradient(), kept);
}

TEST_P(FamilyGradient, RecomputedLogitsGiveTheSameGradient) {
  run(false, true);
  const auto kept = gradient();
  run(false, false);
  const auto again = gradient();
  for (std::size_t i = 0; i < kept.size(); ++i)
    ASSERT_NEAR(again[i], kept[i], 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, FamilyGradient,
                         ::testing::ValuesIn(testing::golden_models(false)),
                         [](const auto& model) { return model.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FamilyGradient);

} // namespace
} // namespace troupe::models
