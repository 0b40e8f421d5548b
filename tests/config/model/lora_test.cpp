#include "config/model/lora.hpp"
#include "config/model/model_shape.hpp"

#include "tests/support/places.hpp"
#include <gmock/gmock.h>

#include <algorithm>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ModelShape golden_shape(const char* name) {
  return read_model_shape(support::source_folder() / "tests/golden/data/models"
                          / name);
}

ModelShape llama() {
  return golden_shape("llama_gqa");
}

ModelShape adapted(ModelShape shape, std::vector<std::string> targets) {
  shape.lora = {.rank = 3, .alpha = 6, .targets = std::move(targets)};
  return shape;
}

TEST(Lora, WithoutAdaptersAllParametersAreTrained) {
  const ModelShape shape = llama();
  EXPECT_THAT(adapters(shape), IsEmpty());
  EXPECT_EQ(trained_parameters(shape), parameters(shape));
}

TEST(Lora, AMatrixHasAPairBesideIt) {
  const ModelShape shape = adapted(llama(), {"o_proj"});
  const auto list = adapters(shape);
  ASSERT_EQ(list.size(), 2U * static_cast<std::size_t>(shape.num_layers));
  const ParameterShape& a = list[0];
  const ParameterShape& b = list[1];
  EXPECT_EQ(a.name, "model.layers.0.self_attn.o_proj.lora_A.weight");
  EXPECT_EQ(a.file_name(), "base_model.model.model.layers.0.self_attn.o_proj."
                           "lora_A.weight");
  EXPECT_EQ(a.rows, 3);
  EXPECT_EQ(a.cols, shape.num_heads * shape.head_dim);
  EXPECT_EQ(b.rows, shape.hidden_size);
  EXPECT_EQ(b.cols, 3);
  EXPECT_EQ(trained_parameters(shape), list);
}

// The split of a matrix goes to the adapter that has its split side, and the
// other one is whole on each rank.
TEST(Lora, PairsAreSplitLikeTheirMatrix) {
  const auto list = adapters(adapted(llama(), {"q_proj", "down_proj"}));
  EXPECT_EQ(list[0].split_dim, -1); // q: A
  EXPECT_EQ(list[1].split_dim, 0);
  EXPECT_EQ(list[1].split_unit, llama().head_dim);
  EXPECT_EQ(list[2].split_dim, 1); // down: A
  EXPECT_EQ(list[3].split_dim, -1);
}

TEST(Lora, AScalarHeadIsTrainedBesideThem) {
  ModelShape shape = adapted(llama(), {"q_proj"});
  shape.scalar_head = true;
  const auto list = adapters(shape);
  EXPECT_EQ(list.back().name, "score.weight");
  EXPECT_EQ(list.back().file_name(), "base_model.model.score.weight");
}

TEST(Lora, ExpertsAndJoinedMatricesCannotBeAdapted) {
  EXPECT_THAT(lora_targets(llama()),
              ElementsAre("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj",
                          "up_proj", "down_proj"));
  EXPECT_THAT(lora_targets(golden_shape("mixtral")),
              ElementsAre("q_proj", "k_proj", "v_proj", "o_proj"));
  EXPECT_THAT(lora_targets(golden_shape("phi3")),
              ElementsAre("o_proj", "down_proj"));
  EXPECT_THAT(lora_targets(golden_shape("gpt2")), IsEmpty());
}

} // namespace
} // namespace troupe
