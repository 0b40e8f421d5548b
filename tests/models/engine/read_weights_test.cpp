// Weights without masters: what is read from a model's files is what kernels
// read of masters, bit for bit, at a third of the memory.
#include "config/base/error.hpp"
#include "models/engine/engine.hpp"
#include "models/generate/generate_options.hpp"
#include "models/kernels/backend.hpp"
#include "models/parallel/parameters.hpp"

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include <gmock/gmock.h>

#include <string_view>
#include <vector>

namespace troupe::models {
namespace {

using troupe::testing::ParallelReplica;
using troupe::testing::small_shape;

class WithoutMasters : public ::testing::TestWithParam<const char*> {
protected:
  Engine::Spec spec(WeightUse use, bool scalar_head = false) {
    const auto folder = folder_ / "model";
    if (!std::filesystem::exists(folder)) {
      ModelShape shape = troupe::testing::experts_shape();
      if (GetParam() == std::string_view("dense")) {
        shape = small_shape();
        shape.head_dim = 16;
      }
      troupe::testing::write_random_model(folder, shape, 1);
    }
    auto spec = troupe::testing::trained_actor(folder);
    spec.trainable = false;
    spec.scalar_head = scalar_head;
    spec.dtype = DType::bf16;
    spec.weight_use = use;
    return spec;
  }
  static void leave_and_return(ParallelReplica& replica) {
    replica.run([](Engine& engine, RunContext&, std::uint32_t) {
      const std::vector planes{Plane::weight};
      engine.offload(planes);
      EXPECT_EQ(engine.device_bytes(), 0u);
      engine.reload(planes);
    });
  }

private:
  troupe::testing::TempFolder folder_;
};

std::vector<float> floats_of(const net::Rows& rows, const char* key) {
  const auto values = rows.at(key).as<float>();
  return {values.begin(), values.end()};
}

TEST_P(WithoutMasters, ReplicasComputeTheSameBits_I1) {
  const auto vocab = small_shape().vocab_size;
  const net::Rows rows = troupe::testing::random_sequences(8, vocab, 20, 2);
  const net::Rows prompts = troupe::testing::random_prompts(vocab);
  GenerateOptions options;
  options.max_new_tokens = 5;
  for (const char* strategy : {"d1", "t2", "p2", "t2s"}) {
    ParallelReplica with(spec(WeightUse::shared), strategy);
    ParallelReplica without(spec(WeightUse::frozen), strategy);
    const auto want = floats_of(with.infer("logprobs", rows), "logprobs");
    const auto said = floats_of(with.generate(prompts, options), "logprobs");
    for (const char* when : {"loaded", "back"}) {
      EXPECT_EQ(floats_of(without.infer("logprobs", rows), "logprobs"), want)
        << strategy << ' ' << when;
      EXPECT_EQ(floats_of(without.generate(prompts, options), "logprobs"), said)
        << strategy << ' ' << when;
      leave_and_return(without);
    }
  }
}

TEST_P(WithoutMasters, AScalarHeadGivesTheSameScores) {
  const net::Rows rows
    = troupe::testing::random_sequences(8, small_shape().vocab_size, 20, 2);
  ParallelReplica with(spec(WeightUse::shared, /*scalar_head=*/true), "t2");
  ParallelReplica without(spec(WeightUse::frozen, /*scalar_head=*/true), "t2");
  EXPECT_EQ(floats_of(without.infer("scores", rows), "scores"),
            floats_of(with.infer("scores", rows), "scores"));
}

TEST_P(WithoutMasters, ReplicasTakeAThirdOfTheMemoryWhereProductsReadBf16) {
  ParallelReplica with(spec(WeightUse::shared), "d1");
  ParallelReplica without(spec(WeightUse::frozen), "d1");
  const auto bytes = [](ParallelReplica& replica) {
    return static_cast<double>(replica.engine(0).device_bytes());
  };
  const auto& backend = troupe::testing::backend_under_test();
  const bool bf16 = backend.storage(DType::bf16) == DType::bf16;
  EXPECT_NEAR(bytes(without) / bytes(with), bf16 ? 0.35 : 1.0, 0.02);
  const Parameters& parameters = without.engine(0).parameters();
  EXPECT_EQ(parameters.has_no_masters(), bf16);
  if (bf16) {
    EXPECT_THROW(parameters.read(Plane::weight), InvariantError);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, WithoutMasters,
                         ::testing::Values("dense", "experts"),
                         [](const auto& model) { return model.param; });

} // namespace
} // namespace troupe::models
