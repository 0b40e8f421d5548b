// The memory count of a device's thread for planes, workspaces and buffers, and
// what plans/memory/call_memory predicts of it.
#include "config/model/family.hpp"
#include "models/engine/engine.hpp"
#include "models/generate/generate_options.hpp"
#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/gemm.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/kernels/workspace.hpp"
#include "models/parallel/parameters.hpp"
#include "plans/memory/memory_model.hpp"
#include "plans/weights/gather_buffers.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/one_matrix.hpp"
#include "tests/support/models/parallel_support.hpp"

#include <string_view>
#include <thread>

namespace troupe::models {
namespace {

using troupe::testing::kPlaneBytes;
using troupe::testing::one_matrix;

/// Runs `body(count)` on a thread whose memory is counted.
template <class Body>
void on_device(const Body& body) {
  net::MemoryCount count;
  std::thread([&] {
    count.count_this_thread();
    body(count);
  }).join();
  EXPECT_EQ(count.now_bytes(), 0u) << "all of it went back";
}

TEST(DeviceMemory, FallsByOffloadedPlanes) {
  on_device([](net::MemoryCount& count) {
    Parameters parameters(one_matrix(), /*trainable=*/true);
    EXPECT_EQ(count.now_bytes(), 4 * kPlaneBytes);
    parameters.offload(Plane::m);
    parameters.offload(Plane::m);
    EXPECT_EQ(count.now_bytes(), 3 * kPlaneBytes);
    parameters.drop(Plane::weight);
    EXPECT_EQ(count.now_bytes(), 2 * kPlaneBytes);
    parameters.expect(Plane::weight);
    parameters.reload(Plane::m);
    EXPECT_EQ(count.now_bytes(), 4 * kPlaneBytes);
  });
}

TEST(DeviceMemory, CountsWhatAWorkspaceAllocated) {
  on_device([](net::MemoryCount& count) {
    Workspace workspace;
    workspace.take(1000);
    const auto before = count.now_bytes();
    EXPECT_GE(before, 1000 * sizeof(float));
    EXPECT_LT(before, 1016 * sizeof(float));
    const auto mark = workspace.mark();
    workspace.take(1 << 20); // in another chunk
    EXPECT_EQ(count.now_bytes(), before + (sizeof(float) << 20));
    workspace.rewind(mark);
    EXPECT_EQ(count.now_bytes(), before);
    workspace.reset();
    EXPECT_EQ(count.now_bytes(), 0u);
    EXPECT_GE(workspace.capacity(), 1 << 20) << "kept for the next call";
  });
}

TEST(DeviceMemory, DoesNotCountHostMemory) {
  on_device([](net::MemoryCount& count) {
    const AlignedFloats of_host(1 << 10);
    EXPECT_EQ(count.now_bytes(), 0u);
    AlignedFloats of_device(nullptr);
    of_device.reserve(1 << 10);
    of_device.reserve(1 << 11);
    EXPECT_EQ(count.now_bytes(), sizeof(float) << 11);
    EXPECT_EQ(count.peak_bytes(), sizeof(float) << 11)
      << "the old block goes first";
    AlignedFloats other = std::move(of_device);
    EXPECT_EQ(count.now_bytes(), sizeof(float) << 11);
  });
}

constexpr std::int64_t kPrompt = 16, kResponse = 32, kSamples = 8;

ModelShape even_shape() {
  ModelShape shape = troupe::testing::small_shape();
  shape.vocab_size = 512;
  shape.hidden_size = 64;
  shape.num_layers = 3;
  shape.head_dim = 16;
  shape.intermediate_size = 128;
  return shape;
}

net::Rows equal_rows(const char* key, std::int64_t tokens) {
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<std::vector<std::uint8_t>> masks;
  for (std::int32_t i = 0; i < kSamples; ++i) {
    ids.emplace_back(static_cast<std::size_t>(tokens), 3 + i);
    masks.emplace_back(static_cast<std::size_t>(kPrompt), 0)
      .resize(static_cast<std::size_t>(tokens), 1);
  }
  net::Rows rows{troupe::testing::first_samples(kSamples),
                 {troupe::testing::column_of(key, DType::i32, ids)}};
  if (tokens > kPrompt)
    rows.add(troupe::testing::column_of("loss_mask", DType::u8, masks));
  return rows;
}

/// A replica whose calls are predicted and counted.
class Foreseen {
public:
  Foreseen(const ModelShape& shape, const char* strategy, bool trainable,
           DType products = DType::f32)
    : shape_(shape),
      products_(products) {
    troupe::testing::write_random_model(folder_ / "model", shape, 1);
    auto spec = troupe::testing::trained_actor(folder_ / "model");
    spec.trainable = trainable;
    spec.scalar_head = shape.scalar_head;
    spec.dtype = products;
    replica_.emplace(spec, strategy);
    place_.strategy = replica_->strategy();
    place_.micro_batch_tokens = 2 * (kPrompt + kResponse);
    for (std::uint32_t i = 0; i < replica_->size(); ++i)
      place_.devices.emplace_back(i);
  }

  troupe::testing::ParallelReplica& begin() {
    for (std::size_t i = 0; i < replica_->size(); ++i)
      replica_->memory(i).begin_peak();
    return *replica_;
  }
  const plans::Placement& place() const {
    return place_;
  }
  /// Checks that every device's peak is that of the plan within this share.
  void expect(plans::CallKind kind, plans::BatchSizes sizes = {},
              double allowed = 0.02) {
    sizes.samples_per_step = kSamples;
    sizes.max_sequence_tokens = kPrompt + kResponse;
    sizes.max_new_tokens = kResponse;
    const Backend& backend = troupe::testing::backend_under_test();
    sizes.engine.packs_weights = &backend == &host_backend();
    if (gemm_kernel_name(DType::bf16) == std::string_view("rounded fp32"))
      sizes.engine.packed_bf16 = DType::f32;
    if (backend.storage(DType::bf16) == DType::bf16)
      sizes.engine.storage = plans::StorageRule::gpu;
    const auto stages = plans::stage_bytes(
      shape_, place_.strategy,
      plans::weight_planes(sizes.engine.storage, products_));
    for (std::uint32_t i = 0; i < replica_->size(); ++i) {
      const auto stage = coordinate_of(place_.strategy, i).pp;
      auto planes = stages[stage].weights;
      if (kind == plans::CallKind::train)
        planes += stages[stage].gradients + stages[stage].optimizer;
      const auto foreseen
        = planes
          + plans::active_bytes(kind, shape_, products_, place_, sizes, stage);
      const auto counted = replica_->memory(i).peak_bytes();
      EXPECT_NEAR(double(counted) / double(foreseen), 1, allowed)
        << to_string(place_.strategy) << ", device " << i << ": " << counted
        << " of " << foreseen << ", " << planes << " of it planes";
    }
  }

private:
  troupe::testing::TempFolder folder_;
  ModelShape shape_;
  DType products_;
  plans::Placement place_;
  std::optional<troupe::testing::ParallelReplica> replica_;
};

void expect_foreseen_training(const ModelShape& shape, const char* strategy,
                              double allowed = 0.02,
                              DType products = DType::f32) {
  for (const bool recompute : {false, true}) {
    Foreseen replica(shape, strategy, /*trainable=*/true, products);
    TrainSpec train;
    train.fn = "sft_loss";
    train.mini_batches = {troupe::testing::first_samples(kSamples)};
    train.micro_batch_tokens = replica.place().micro_batch_tokens;
    train.recompute = recompute;
    const auto rows = equal_rows("sequence_ids", kPrompt + kResponse);
    // the space of z1 stays; in the first step it is allocated when the first
    // sum starts, which is before or after the peak of the backward pass
    for (int step = 0; step < 2; ++step)
      replica.begin().train(train, rows);
    replica.expect(plans::CallKind::train, {.recompute_activations = recompute},
                   allowed);
  }
}

void expect_foreseen_generation(const ModelShape& shape, const char* strategy,
                                DType products = DType::f32) {
  Foreseen replica(shape, strategy, /*trainable=*/false, products);
  GenerateOptions options;
  options.max_new_tokens = kResponse;
  options.ignore_eos = true;
  replica.begin().generate(equal_rows("prompt_ids", kPrompt), options);
  replica.expect(plans::CallKind::generate);
}

void expect_foreseen_inference(const ModelShape& shape, const char* strategy,
                               DType products = DType::f32) {
  Foreseen replica(shape, strategy, /*trainable=*/false, products);
  replica.begin().infer(
    "logprobs", equal_rows("sequence_ids", kPrompt + kResponse),
    {.micro_batch_tokens = replica.place().micro_batch_tokens});
  replica.expect(plans::CallKind::inference);
}

class ForeseenMemory : public ::testing::TestWithParam<const char*> {};

TEST_P(ForeseenMemory, OfTrainingEqualsWhatItUses) {
  expect_foreseen_training(even_shape(), GetParam());
}

TEST_P(ForeseenMemory, OfInferenceEqualsWhatItUses) {
  expect_foreseen_inference(even_shape(), GetParam());
}

TEST_P(ForeseenMemory, OfGenerationEqualsWhatItUses) {
  expect_foreseen_generation(even_shape(), GetParam());
}

/// Activations and cache are bf16 on backends that store them so.
TEST_P(ForeseenMemory, OfBf16EqualsWhatItUses) {
  expect_foreseen_training(even_shape(), GetParam(), 0.02, DType::bf16);
  expect_foreseen_inference(even_shape(), GetParam(), DType::bf16);
  expect_foreseen_generation(even_shape(), GetParam(), DType::bf16);
}

/// The same sizes with what else the layers of a family keep.
class FamilyMemory : public ::testing::TestWithParam<const char*> {
protected:
  ModelShape shape() const {
    const ModelShape sizes = even_shape();
    ModelShape shape = find_family(GetParam())->traits;
    shape.family = GetParam();
    shape.vocab_size = sizes.vocab_size;
    shape.hidden_size = sizes.hidden_size;
    shape.num_layers = sizes.num_layers;
    shape.num_heads = shape.num_kv_heads = sizes.num_heads;
    shape.head_dim = sizes.head_dim;
    shape.intermediate_size = sizes.intermediate_size;
    shape.max_positions = sizes.max_positions;
    shape.eos = sizes.eos;
    if (GetParam() == std::string("qwen3_moe"))
      shape.experts = {.count = 4, .per_token = 2, .width = 64};
    if (GetParam() == std::string("glm4_moe"))
      shape.experts
        = {.count = 8,
           .per_token = 2,
           .width = 32,
           .shared_width = 64,
           .dense_layers = std::vector<bool>(
             static_cast<std::size_t>(shape.num_layers), false),
           .router = {.score = RouterScore::sigmoid, .corrected = true}};
    if (!shape.experts.dense_layers.empty())
      shape.experts.dense_layers.front() = true;
    return shape;
  }
};

TEST_P(FamilyMemory, OfTrainingEqualsWhatItUses) {
  for (const char* strategy : {"d1", "t2", "t2s"})
    expect_foreseen_training(shape(), strategy);
}

TEST_P(FamilyMemory, OfGenerationEqualsWhatItUses) {
  for (const char* strategy : {"d1", "t2"})
    expect_foreseen_generation(shape(), strategy);
}

/// Loads of dealt experts are what a router makes of them; plans have even
/// ones.
class DealtMemory : public FamilyMemory {};

TEST_P(DealtMemory, OfTrainingIsNearWhatItUses) {
  for (const char* strategy : {"t2e2", "d2e2", "d2e2z1"})
    expect_foreseen_training(shape(), strategy, /*allowed=*/0.15);
  // the load of an expert that is alone on its device is any
  expect_foreseen_training(shape(), "d2t2e4", /*allowed=*/0.25);
}
INSTANTIATE_TEST_SUITE_P(Families, DealtMemory,
                         ::testing::Values("qwen3_moe", "glm4_moe"));
INSTANTIATE_TEST_SUITE_P(Families, FamilyMemory,
                         ::testing::Values("olmo2", "gpt_neox", "glm4",
                                           "qwen3_moe", "glm4_moe"));

const auto foreseen_strategy = [](const auto& test) { return test.param; };
INSTANTIATE_TEST_SUITE_P(Strategies, ForeseenMemory,
                         ::testing::Values("d1", "d2", "t2", "t2s", "p2", "p3",
                                           "p2t2", "d2z1", "d2z3"),
                         foreseen_strategy);

} // namespace
} // namespace troupe::models
