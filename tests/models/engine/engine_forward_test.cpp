// The stack against transformers: every case of golden models/
// to the tolerances of its meta.json.
#include "models/engine/engine.hpp"
#include "models/kernels/workspace.hpp"
#include "models/transformer/transformer.hpp"
#include "models/transformer/vocab_logprobs.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/golden.hpp"

namespace troupe::models {
namespace {

using troupe::testing::GoldenTensor;
using troupe::testing::GoldenTensors;

struct ModelCase {
  std::filesystem::path folder;
  GoldenTensors io;
  nlohmann::json tolerance;
  std::unique_ptr<Engine> engine;
  net::Rows rows;
  std::vector<double> cu_seqlens;

  explicit ModelCase(const std::string& name)
    : folder(troupe::testing::golden_folder() / "models" / name),
      io(troupe::testing::read_golden(folder / "io.safetensors")),
      tolerance(troupe::testing::read_golden_meta(folder)["tolerance_abs"]),
      cu_seqlens(io.at("cu_seqlens").values) {
    Engine::Spec spec;
    spec.backend = &troupe::testing::backend_under_test();
    spec.folder = folder;
    spec.role = name;
    spec.scalar_head = io.count("values") > 0;
    engine = std::make_unique<Engine>(spec);
    engine->load_weights();
    const auto ids = troupe::testing::split(io.at("tokens").ints(), cu_seqlens);
    rows = net::Rows(
      troupe::testing::first_samples(ids.size()),
      {troupe::testing::column_of("sequence_ids", DType::i32, ids)});
  }

  void expect_near(const char* name, const float* got,
                   const std::vector<double>& want) const {
    const double allowed = tolerance.at(name);
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], allowed) << name << " entry " << i;
  }
};

class GoldenModel : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenModel, HasTheHiddenStatesAndOutputsOfTheReference) {
  TROUPE_NEEDS_GOLDEN();
  const ModelCase c(GetParam());
  const auto ids = c.io.at("tokens").ints();
  std::vector<std::span<const std::int32_t>> sequences;
  for (std::size_t i = 0; i + 1 < c.cu_seqlens.size(); ++i)
    sequences.emplace_back(
      ids.data() + static_cast<std::ptrdiff_t>(c.cu_seqlens[i]),
      ids.data() + static_cast<std::ptrdiff_t>(c.cu_seqlens[i + 1]));
  const PackedTokens batch = pack(sequences);
  Backend& backend = troupe::testing::backend_under_test();
  RopeTables rope(c.engine->shape(), backend);
  rope.grow(256);
  const Transformer& loaded = c.engine->transformer();
  Transformer model{loaded.shape, loaded.weights, rope};
  model.backend = &backend;
  Workspace workspace(backend.memory());
  std::vector<std::vector<float>> probe;
  const TypedPtr hidden_TH
    = forward(model, batch, RunContext{}, workspace, nullptr, &probe);
  c.expect_near("hidden_0", probe[0].data(), c.io.at("hidden_0").values);
  c.expect_near("hidden_1", probe[1].data(), c.io.at("hidden_1").values);
  if (!c.engine->shape().scalar_head) {
    const auto& want = c.io.at("logits").values;
    float* logits = workspace.take(static_cast<std::int64_t>(want.size()));
    VocabularyHead head{loaded.weights.head};
    head.cap = loaded.shape.caps.logits;
    head.temperature = loaded.shape.multipliers.logits;
    head.backend = &backend;
    raw_logits(head, hidden_TH, batch.num_tokens(), logits);
    const auto found
      = backend.read(logits, static_cast<std::int64_t>(want.size()));
    c.expect_near("logits", found.floats(), want);
  }
}

TEST_P(GoldenModel, InfersTheReferencesStatisticsPerToken) {
  TROUPE_NEEDS_GOLDEN();
  const ModelCase c(GetParam());
  RunContext context;
  if (c.engine->shape().scalar_head) {
    const net::Rows values = c.engine->infer("values", c.rows, context);
    const net::Rows scores = c.engine->infer("scores", c.rows, context);
    c.expect_near("scores", scores.at("scores").as<float>().data(),
                  c.io.at("scores").values);
    const auto offsets = values.at("values").offsets();
    for (std::size_t i = 0; i + 1 < c.cu_seqlens.size(); ++i) {
      const auto& all = c.io.at("values").values;
      const std::vector<double> own(
        all.begin() + static_cast<std::ptrdiff_t>(c.cu_seqlens[i]),
        all.begin() + static_cast<std::ptrdiff_t>(c.cu_seqlens[i + 1]));
      const float* got = values.at("values").as<float>().data() + offsets[i];
      EXPECT_EQ(got[0], 0.0F);
      c.expect_near("values", got + 1, own);
    }
    return;
  }
  const net::Rows out = c.engine->infer(
    "logprobs", c.rows, context, {.entropy = true, .micro_batch_tokens = 40});
  const float* logprobs = out.at("logprobs").as<float>().data();
  const float* entropy = out.at("entropy").as<float>().data();
  const auto& want = c.io.at("logprobs").values;
  const auto& want_entropy = c.io.at("entropy").values;
  std::size_t next = 0;
  for (std::size_t i = 0; i + 1 < c.cu_seqlens.size(); ++i) {
    const auto first = static_cast<std::size_t>(c.cu_seqlens[i]);
    EXPECT_EQ(logprobs[first], 0.0F);
    for (auto t = first + 1; t < static_cast<std::size_t>(c.cu_seqlens[i + 1]);
         ++t) {
      ASSERT_NEAR(logprobs[t], want[next++], c.tolerance.at("logprobs"));
      ASSERT_NEAR(entropy[t], want_entropy[t - 1], c.tolerance.at("entropy"));
    }
  }
  EXPECT_EQ(next, want.size());
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModel,
                         ::testing::ValuesIn(testing::golden_models(true)),
                         [](const auto& model) { return model.param; });

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenModel);

TEST(GoldenModels, AreAllHere) {
  TROUPE_NEEDS_GOLDEN();
  EXPECT_GE(testing::golden_models(true).size(), 13U);
}

} // namespace
} // namespace troupe::models
