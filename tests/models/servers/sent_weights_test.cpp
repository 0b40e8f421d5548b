// The memory file that a server takes a model from, read as the server does.
#include "models/hf/safetensors.hpp"
#include "models/parallel/parameters.hpp"
#include "models/servers/sent_weights.hpp"
#include "models/servers/tensor_sum.hpp"

#include "tests/support/models/small_shape.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

namespace troupe::models {
namespace {

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SentWeights, EachParameterIsInTheFileByItsCheckpointNameAndSum) {
  Parameters parameters(troupe::parameters(testing::small_shape()),
                        /*trainable=*/false);
  float value = 0;
  for (float& number : parameters.plane(Plane::weight))
    number = value += 1;
  SentWeights weights;
  weights.take(parameters);
  const auto file = read_all(weights.path());
  ASSERT_EQ(weights.tensors().size(), parameters.shapes().size());
  std::uint64_t num_bytes = 0;
  for (const auto& tensor : weights.tensors()) {
    const auto at = static_cast<std::size_t>(parameters.find(tensor.name));
    const auto& shape = parameters.shapes().at(at);
    const auto size
      = static_cast<std::size_t>(shape.num_elements()) * sizeof(float);
    num_bytes += size;
    ASSERT_LE(tensor.offset + size, file.size());
    float first = 0;
    std::memcpy(&first, file.data() + tensor.offset, sizeof first);
    EXPECT_EQ(first, static_cast<float>(parameters.offset(at) + 1));
    EXPECT_EQ(tensor.sum, tensor_sum(std::as_bytes(
                            std::span(file).subspan(tensor.offset, size))));
    EXPECT_EQ(tensor.shape.size(), shape.vector ? 1U : 2U);
  }
  EXPECT_EQ(weights.num_bytes(), num_bytes);
}

TEST(SentWeights, TheFileIsASafetensorsFile) {
  Parameters parameters(troupe::parameters(testing::small_shape()),
                        /*trainable=*/false);
  std::ranges::fill(parameters.plane(Plane::weight), 3.0F);
  SentWeights weights;
  weights.take(parameters);
  const auto file = SafetensorsFile::open(weights.path());
  ASSERT_EQ(file.tensors().size(), weights.tensors().size());
  for (const auto& tensor : weights.tensors()) {
    const auto& stored = file.at(tensor.name);
    EXPECT_EQ(stored.shape, tensor.shape);
    EXPECT_EQ(tensor_sum(stored.data), tensor.sum);
  }
}

TEST(SentWeights, AdaptersAreByPeftsNamesWithTheirFactor) {
  auto shape = testing::small_shape();
  shape.lora = {.rank = 2, .alpha = 6, .targets = {"q_proj", "up_proj"}};
  Parameters parameters(trained_parameters(shape), /*trainable=*/false);
  std::ranges::fill(parameters.plane(Plane::weight), 3.0F);
  SentWeights weights;
  weights.take(parameters, shape.lora);
  EXPECT_EQ(weights.adapter_scale(), 3.0);
  ASSERT_EQ(weights.tensors().size(), 4 * 2U); // of two layers
  EXPECT_EQ(weights.tensors()[0].name,
            "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(weights.tensors()[0].shape, (std::vector<std::int64_t>{2, 40}));
  EXPECT_EQ(weights.tensors()[1].name,
            "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight");
  EXPECT_EQ(weights.tensors()[1].shape, (std::vector<std::int64_t>{40, 2}));
  // the same object may then be of a whole model
  Parameters whole(troupe::parameters(shape), /*trainable=*/false);
  weights.take(whole);
  EXPECT_FALSE(weights.adapter_scale());
  EXPECT_EQ(weights.tensors().size(), whole.shapes().size());
}

TEST(SentWeights, ALaterVersionReplacesTheFirst) {
  Parameters parameters(troupe::parameters(testing::small_shape()),
                        /*trainable=*/false);
  SentWeights weights;
  weights.take(parameters);
  const auto before = weights.tensors();
  const auto path = weights.path();
  std::ranges::fill(parameters.plane(Plane::weight), 2.0F);
  weights.take(parameters);
  EXPECT_EQ(weights.path(), path);
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_NE(weights.tensors()[i].sum, before[i].sum);
}

} // namespace
} // namespace troupe::models
