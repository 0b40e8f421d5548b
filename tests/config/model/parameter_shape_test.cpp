// Which row of a checkpoint's tensor has which row of a parameter, for families
// that store heads in an order of their own.
#include "config/model/family.hpp"
#include "config/model/model_shape.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace troupe {
namespace {

using ::testing::ElementsAre;

ModelShape shape_of(const char* family) {
  ModelShape shape = find_family(family)->traits;
  shape.family = family;
  shape.vocab_size = 10;
  shape.hidden_size = 8;
  shape.num_heads = shape.num_kv_heads = 2;
  shape.head_dim = 4;
  shape.intermediate_size = 6;
  shape.num_layers = 1;
  return shape;
}

ParameterShape parameter(const ModelShape& shape, const std::string& name) {
  const auto all = parameters(shape);
  return *std::ranges::find(all, "model.layers.0." + name,
                            &ParameterShape::name);
}

std::vector<std::int64_t> stored_rows(const ParameterShape& parameter) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < parameter.rows; ++i)
    rows.push_back(parameter.stored.row_of(i));
  return rows;
}

TEST(StoredAs, MostRowsAreInOrder) {
  const auto shape = shape_of("llama");
  EXPECT_THAT(stored_rows(parameter(shape, "self_attn.q_proj.weight")),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(StoredAs, HalvesOfRotatedDimensionsArePairsInAGlm) {
  auto shape = shape_of("glm");
  shape.rope.share = 1;
  EXPECT_THAT(stored_rows(parameter(shape, "self_attn.q_proj.weight")),
              ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  shape.head_dim = 8;
  shape.num_heads = shape.num_kv_heads = 1;
  shape.rope.share = 0.5;
  EXPECT_THAT(stored_rows(parameter(shape, "self_attn.k_proj.bias")),
              ElementsAre(0, 2, 1, 3, 4, 5, 6, 7))
    << "the other half is not rotated";
  EXPECT_THAT(stored_rows(parameter(shape, "self_attn.v_proj.weight")),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(StoredAs, AGptNeoxJoinsQueriesKeysAndValuesHeadByHead) {
  const auto shape = shape_of("gpt_neox");
  const auto keys = parameter(shape, "self_attn.k_proj.weight");
  EXPECT_EQ(keys.stored.name,
            "gpt_neox.layers.0.attention.query_key_value.weight");
  EXPECT_EQ(keys.stored.rows, 24);
  EXPECT_THAT(stored_rows(keys), ElementsAre(4, 5, 6, 7, 16, 17, 18, 19));
  EXPECT_EQ(parameter(shape, "mlp.up_proj.bias").stored.name,
            "gpt_neox.layers.0.mlp.dense_h_to_4h.bias");
}

TEST(StoredAs, AGlm4HasItsOwnNamesOfFourNorms) {
  const auto shape = shape_of("glm4");
  const auto stored
    = [&](const char* name) { return parameter(shape, name).file_name(); };
  EXPECT_EQ(stored("post_attention_layernorm.weight"),
            "model.layers.0.post_self_attn_layernorm.weight");
  EXPECT_EQ(stored("pre_feedforward_layernorm.weight"),
            "model.layers.0.post_attention_layernorm.weight");
  EXPECT_EQ(stored("post_feedforward_layernorm.weight"),
            "model.layers.0.post_mlp_layernorm.weight");
}

TEST(StoredAs, AnOlmo2HasNormsOfOutputsAlone) {
  std::vector<std::string> norms;
  for (const auto& one : parameters(shape_of("olmo2")))
    if (one.layer == 0 && one.vector)
      norms.push_back(one.name.substr(std::string("model.layers.0.").size()));
  EXPECT_THAT(norms,
              ElementsAre("self_attn.q_norm.weight", "self_attn.k_norm.weight",
                          "post_attention_layernorm.weight",
                          "post_feedforward_layernorm.weight"));
}

} // namespace
} // namespace troupe
