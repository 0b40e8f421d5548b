#include "config/model/model_shape.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

using nlohmann::json;

TEST(HfConfig, TheTextPartOfAModelOfImagesAndTextIsReadAlone) {
  const json text = {{"model_type", "mistral"},
                     {"vocab_size", 64},
                     {"hidden_size", 16},
                     {"intermediate_size", 24},
                     {"num_hidden_layers", 2},
                     {"num_attention_heads", 4},
                     {"num_key_value_heads", 2},
                     {"head_dim", 8},
                     {"sliding_window", nullptr},
                     {"rope_theta", 1e9},
                     {"max_position_embeddings", 4096}};
  const json whole = {{"model_type", "mistral3"},
                      {"architectures", {"Mistral3ForConditionalGeneration"}},
                      {"torch_dtype", "bfloat16"},
                      {"text_config", text},
                      {"vision_config", {{"model_type", "pixtral"}}}};
  auto alone = text;
  alone["torch_dtype"] = "bfloat16"; // what it shares with the whole
  const auto shape = parse_model_shape(whole.dump(), "config.json");
  EXPECT_EQ(shape, parse_model_shape(alone.dump(), "config.json"));
  EXPECT_EQ(shape.stored_dtype, DType::bf16);
  EXPECT_THAT(print_hf_config(shape),
              ::testing::HasSubstr("MistralForCausalLM"));
}

} // namespace
} // namespace troupe
