// Gradients of every family against transformers' autograd: norm and a dot
// product of each parameter's gradient (data/make_family_gradients.py).
#include "models/engine/engine.hpp"
#include "models/hf/stored_parameters.hpp"
#include "models/kernels/workspace.hpp"
#include "models/parallel/run_context.hpp"
#include "models/transformer/transformer.hpp"
#include "models/transformer/vocab_logprobs.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/golden.hpp"
#include "tests/support/places.hpp"
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>

namespace troupe::models {
namespace {

nlohmann::json reference_gradients() {
  std::ifstream file(support::second_opinion()
                       ? support::source_folder()
                           / "tests/models/cases/family_gradients.json"
                       : support::golden_folder() / "family_gradients.json");
  return nlohmann::json::parse(file).at("cases");
}

class FamilyGradient : public ::testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    TROUPE_NEEDS_GOLDEN();
    folder_ = troupe::testing::golden_folder() / "models" / GetParam();
    Engine::Spec spec;
    spec.backend = &troupe::testing::backend_under_test();
    spec.folder = folder_;
    spec.role = GetParam();
    spec.trainable = true;
    engine_ = std::make_unique<Engine>(spec);
    engine_->load_weights();
    const auto io = troupe::testing::read_golden(folder_ / "io.safetensors");
    ids_ = io.at("tokens").ints();
    const auto cu = io.at("cu_seqlens").ints();
    std::vector<std::span<const std::int32_t>> sequences;
    for (std::size_t i = 0; i + 1 < cu.size(); ++i)
      sequences.emplace_back(ids_.data() + cu[i], ids_.data() + cu[i + 1]);
    batch_ = pack(sequences);
    for (std::size_t i = 0; i + 1 < cu.size(); ++i)
      for (std::int64_t t = cu[i]; t + 1 < cu[i + 1]; ++t) {
        wanted_.positions_R.push_back(t);
        wanted_.targets_R.push_back(ids_[static_cast<std::size_t>(t) + 1]);
      }
  }

  /// The loss of make_family_gradients.py; writes gradients to the grad plane.
  double run(bool recompute, bool keep_logits) {
    Parameters& parameters = engine_->parameters();
    std::ranges::fill(parameters.plane(Plane::grad), 0.0F);
    const Transformer& loaded = engine_->transformer();
    const Weights grads = weights_of(engine_->shape(), parameters, Plane::grad);
    Backend& backend = troupe::testing::backend_under_test();
    RopeTables rope(loaded.shape, backend);
    rope.grow(256);
    Transformer model{loaded.shape, loaded.weights, rope};
    model.backend = &backend;
    Workspace workspace(backend.memory());
    Saved saved;
    saved.recompute = recompute;
    const RunContext context;
    const float* hidden = forward(model, batch_, context, workspace, &saved);
    VocabularyHead head{loaded.weights.head};
    head.cap = loaded.shape.logit_cap;
    head.temperature = loaded.shape.multipliers.logits;
    head.backend = &backend;
    const auto found
      = token_statistics(head, hidden, wanted_, workspace, keep_logits);
    const auto count = static_cast<std::size_t>(wanted_.size());
    backend.wait();
    const double share = 1.0 / static_cast<double>(count);
    double loss = 0;
    for (std::size_t r = 0; r < count; ++r)
      loss += share * (found.logprobs_R[r] + 0.1 * found.entropy_R[r]);
    const std::vector<float> d_logprobs(count, static_cast<float>(share));
    const std::vector<float> d_entropy(count, static_cast<float>(0.1 * share));
    const std::int64_t floats = hidden_floats(model, batch_, context);
    float* d_hidden = workspace.take(floats);
    backend.fill(d_hidden, floats, 0.0F);
    token_statistics_backward(head, hidden, wanted_, found, d_logprobs.data(),
                              d_entropy.data(), d_hidden, grads.head,
                              workspace);
    backward(model, batch_, saved, d_hidden, grads, context, workspace);
    backend.wait();
    return loss;
  }

  std::vector<float> gradient() {
    const auto plane = engine_->parameters().plane(Plane::grad);
    return {plane.begin(), plane.end()};
  }

  std::filesystem::path folder_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::int32_t> ids_;
  PackedTokens batch_;
  WantedTokens wanted_;
};

TEST_P(FamilyGradient, EqualsTransformersForEveryParameter) {
  const auto reference = reference_gradients().at(GetParam());
  EXPECT_NEAR(run(false, true), reference.at("loss").get<double>(), 1e-4);
  const Parameters& parameters = engine_->parameters();
  std::vector<ParameterValues> values;
  for (std::size_t i = 0; i < parameters.shapes().size(); ++i) {
    const float* data
      = parameters.plane(Plane::grad).data() + parameters.offset(i);
    const ParameterShape& shape = parameters.shapes()[i];
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
