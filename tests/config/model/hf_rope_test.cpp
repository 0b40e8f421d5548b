#include "config/model/model_shape.hpp"

#include "tests/support/places.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace troupe {
namespace {

using nlohmann::json;

/// A config.json of four layers with heads of eight dimensions.
json config_of(const char* family, const char* causal_class) {
  return {{"model_type", family},
          {"architectures", {causal_class}},
          {"vocab_size", 32},
          {"hidden_size", 16},
          {"intermediate_size", 24},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"head_dim", 8},
          {"pad_token_id", 0},
          {"max_position_embeddings", 4096}};
}

ModelShape parsed(const json& config) {
  return parse_model_shape(config.dump(), "config.json");
}

/// Returns the shape, after checking that it is printed with nothing lost.
ModelShape printed_and_parsed(const json& config) {
  auto shape = parsed(config);
  EXPECT_EQ(parse_model_shape(print_hf_config(shape), "printed"), shape);
  return shape;
}

TEST(HfRope, GoldenNumbersOfLlama3) {
  const auto folder = support::golden_folder() / "models/llama_rope_llama3";
  if (support::second_opinion() && !std::filesystem::exists(folder))
    GTEST_SKIP() << "no golden data at " << folder;
  const auto shape = read_model_shape(folder);
  EXPECT_EQ(shape.rope.scaling, RopeScaling::llama3);
  EXPECT_EQ(shape.rope.factor, 8.0);
  EXPECT_EQ(shape.rope.band_low, 1.0);
  EXPECT_EQ(shape.rope.band_high, 4.0);
  EXPECT_EQ(shape.rope.original_positions, 24);
  EXPECT_EQ(shape.rope.theta, 1000.0);
  EXPECT_EQ(shape.head_dim, 32);
  EXPECT_TRUE(shape.tied_embeddings);
}

TEST(HfRope, TheContextIsWhatTheRotationsOfAModelReach) {
  const auto context = [](const json& scaling) {
    auto config = config_of("llama", "LlamaForCausalLM");
    config["rope_scaling"] = scaling;
    return parsed(config).context_tokens();
  };
  EXPECT_EQ(context(nullptr), 4096);
  EXPECT_EQ(context({{"type", "linear"}, {"factor", 2.5}}), 10240);
  EXPECT_EQ(context({{"rope_type", "llama3"},
                     {"factor", 8.0},
                     {"low_freq_factor", 1.0},
                     {"high_freq_factor", 4.0},
                     {"original_max_position_embeddings", 512}}),
            4096);
  EXPECT_EQ(context({{"type", "yarn"},
                     {"factor", 4.0},
                     {"original_max_position_embeddings", 4096}}),
            16384);
  EXPECT_EQ(context({{"type", "dynamic"}, {"factor", 4.0}}), 4096)
    << "beyond it frequencies would change with the length";
  EXPECT_EQ(context({{"type", "longrope"},
                     {"short_factor", {1.0, 1.1, 1.2, 1.3}},
                     {"long_factor", {1.0, 2.0, 3.0, 4.0}},
                     {"original_max_position_embeddings", 1024}}),
            1024)
    << "beyond it the long factors apply";
}

TEST(HfRope, YarnIsReadInBothSpellings) {
  auto published = config_of("qwen2", "Qwen2ForCausalLM");
  published["rope_theta"] = 1e6;
  published["rope_scaling"] = {{"type", "yarn"},
                               {"factor", 4.0},
                               {"original_max_position_embeddings", 1024}};
  const auto shape = printed_and_parsed(published);
  EXPECT_EQ(shape.rope.scaling, RopeScaling::yarn);
  EXPECT_EQ(shape.rope.factor, 4);
  EXPECT_EQ(shape.rope.original_positions, 1024);
  EXPECT_EQ(shape.rope.band_high, 32);
  auto today = config_of("qwen2", "Qwen2ForCausalLM");
  today["rope_parameters"] = {{"rope_type", "yarn"},
                              {"rope_theta", 1e6},
                              {"factor", 4.0},
                              {"original_max_position_embeddings", 1024}};
  EXPECT_EQ(parsed(today), shape);
  today["rope_parameters"].erase("factor");
  EXPECT_EQ(parsed(today), shape) << "the ratio of both lengths";
}

TEST(HfRope, PublishedLongropeHasItsLengthOutsideOfTheScaling) {
  auto config = config_of("phi3", "Phi3ForCausalLM");
  config["original_max_position_embeddings"] = 1024;
  config["partial_rotary_factor"] = 0.5;
  config["rope_scaling"] = {{"type", "longrope"},
                            {"short_factor", {1.0, 1.5}},
                            {"long_factor", {1.0, 4.0}}};
  const auto shape = printed_and_parsed(config);
  EXPECT_EQ(shape.rope.original_positions, 1024);
  EXPECT_EQ(shape.rope.rotated_dim(shape.head_dim), 4);
  EXPECT_THAT(shape.rope.short_factors, ::testing::ElementsAre(1.0, 1.5));
  config["rope_scaling"]["type"] = "su";
  EXPECT_EQ(parsed(config), shape) << "its first name";
}

TEST(HfRope, LayersWithAWindowHaveABaseOfTheirOwn) {
  auto published = config_of("gemma3_text", "Gemma3ForCausalLM");
  published["sliding_window"] = 512;
  published["sliding_window_pattern"] = 2;
  published["rope_theta"] = 2e6;
  published["rope_local_base_freq"] = 2e4;
  published["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  const auto shape = printed_and_parsed(published);
  EXPECT_EQ(shape.rope.local_theta, 2e4);
  EXPECT_EQ(shape.rope_of(0), LayerRope::local);
  EXPECT_EQ(shape.rope_of(1), LayerRope::global);
  auto today = published;
  for (const char* key : {"rope_theta", "rope_local_base_freq", "rope_scaling"})
    today.erase(key);
  today["rope_parameters"]
    = {{"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 2e4}}},
       {"full_attention",
        {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 2e6}}}};
  EXPECT_EQ(parsed(today), shape);
}

TEST(HfRope, LayersWithoutRotationsAreListedOrEveryFourth) {
  auto config = config_of("smollm3", "SmolLM3ForCausalLM");
  EXPECT_EQ(printed_and_parsed(config).unrotated_layers,
            (std::vector<bool>{false, false, false, true}));
  config["no_rope_layers"] = {0, 1, 1, 1};
  const auto shape = printed_and_parsed(config);
  EXPECT_EQ(shape.rope_of(0), LayerRope::none);
  EXPECT_EQ(shape.rope_of(3), LayerRope::global);
}

} // namespace
} // namespace troupe
