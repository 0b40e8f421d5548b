#include "config/base/error.hpp"
#include "config/model/family.hpp"
#include "config/model/hf_dropout.hpp"
#include "config/model/model_shape.hpp"

#include "tests/support/places.hpp"
#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <map>

namespace {

using ::testing::ElementsAre;
using troupe::ConfigError;
using troupe::DType;
using troupe::ModelShape;
using troupe::parse_model_shape;
using troupe::print_hf_config;
using troupe::read_end_tokens;
using troupe::read_model_shape;
using troupe::support::golden_folder;
using troupe::support::source_folder;

std::string why_not(const std::string& json) {
  try {
    parse_model_shape(json, "config.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

const char* const tiny_llama = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "vocab_size": 10, "hidden_size": 8, "intermediate_size": 12,
  "num_hidden_layers": 2, "num_attention_heads": 2,
  "num_key_value_heads": 1, "eos_token_id": [2, 3]})";

std::string changed(const std::string& key, const nlohmann::json& value) {
  auto json = nlohmann::json::parse(tiny_llama);
  json[key] = value;
  return json.dump();
}

TEST(ModelShape, BothSpellingsOfEveryGoldenConfigParseAlike) {
  const auto models = golden_folder() / "models";
  if (troupe::support::second_opinion() && !std::filesystem::exists(models))
    GTEST_SKIP() << "no golden data at " << models;
  int seen = 0;
  for (const auto& folder : std::filesystem::directory_iterator(models)) {
    const auto name = folder.path().filename().string();
    const auto now = read_model_shape(folder.path());
    const auto old = read_model_shape(folder.path() / "config_published.json");
    EXPECT_EQ(now, old) << name;
    EXPECT_EQ(parse_model_shape(print_hf_config(now), "printed"), now) << name;
    ++seen;
  }
  EXPECT_GE(seen, 13);
}

/// Names and shapes in the safetensors files of a golden folder.
std::map<std::string, std::vector<std::int64_t>>
stored_shapes(const std::filesystem::path& folder) {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with("model") || !name.ends_with(".safetensors"))
      continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    std::uint64_t bytes = 0;
    stream.read(reinterpret_cast<char*>(&bytes), 8);
    std::string header(bytes, ' ');
    stream.read(header.data(), static_cast<std::streamsize>(bytes));
    const auto tensors = nlohmann::json::parse(header);
    for (const auto& [key, tensor] : tensors.items())
      if (key != "__metadata__")
        shapes[key] = tensor["shape"].get<std::vector<std::int64_t>>();
  }
  return shapes;
}

TEST(ModelShape, ParametersEqualThoseOfTheGoldenFiles) {
  const auto models = golden_folder() / "models";
  if (troupe::support::second_opinion() && !std::filesystem::exists(models))
    GTEST_SKIP() << "no golden data at " << models;
  for (const auto& folder : std::filesystem::directory_iterator(models)) {
    const auto name = folder.path().filename().string();
    std::map<std::string, std::vector<std::int64_t>> ours;
    for (const auto& parameter : parameters(read_model_shape(models / name))) {
      const auto& stored = parameter.stored;
      const auto rows = stored.rows > 0 ? stored.rows : parameter.rows;
      ours[parameter.file_name()] = parameter.vector ? std::vector{rows}
                                    : stored.transposed
                                      ? std::vector{parameter.cols, rows}
                                      : std::vector{rows, parameter.cols};
    }
    EXPECT_EQ(ours, stored_shapes(models / name)) << name;
  }
}

TEST(ModelShape, BenchCardsParse) {
  std::ifstream stream(source_folder() / "tests/bench/cards.json");
  const std::map<std::string, std::uint64_t> expected
    = {{"tiny", 918656},      {"small", 27402752}, {"medium", 88099584},
       {"experts", 79767040}, {"1b", 1235814400},  {"qwen3_0.6b", 596049920},
       {"8b", 8030261248}};
  const auto cards = nlohmann::json::parse(stream);
  for (const auto& [name, card] : cards["cards"].items()) {
    auto config = card["model"];
    if (card.contains("experts"))
      config.update(card["experts"]);
    config.emplace("model_type",
                   card.contains("experts") ? "qwen3_moe" : "llama");
    config["rms_norm_eps"] = 1e-5;
    const auto shape = parse_model_shape(config.dump(), name);
    EXPECT_EQ(num_parameters(shape), expected.at(name)) << name;
    EXPECT_EQ(weight_bytes(shape, DType::f32), 4 * expected.at(name));
  }
}

TEST(ModelShape, DefaultsAreThoseOfTransformers) {
  const auto shape = parse_model_shape(tiny_llama, "config.json");
  EXPECT_EQ(shape.head_dim, 4);
  EXPECT_EQ(shape.norm_eps, 1e-6);
  EXPECT_EQ(shape.rope.theta, 10000.0);
  EXPECT_EQ(shape.stored_dtype, DType::f32);
  EXPECT_EQ(shape.bos, -1);
  EXPECT_EQ(shape.pad, -1);
  EXPECT_EQ(shape.eos, (std::vector<std::int32_t>{2, 3}));
}

TEST(ModelShape, ThePadTokenHasAPaddingRowWhereTransformersHasOne) {
  const auto row = [](const std::string& family, const nlohmann::json& pad) {
    auto config = nlohmann::json::parse(tiny_llama);
    config["model_type"] = family;
    config["hidden_size"] = 16; // a quarter of a head is a pair
    config["architectures"] = {troupe::find_family(family)->causal_class};
    for (const auto& [theirs, ours] : {std::pair{"n_embd", "hidden_size"},
                                       {"n_layer", "num_hidden_layers"},
                                       {"n_head", "num_attention_heads"}})
      config[theirs] = config[ours];
    if (!pad.is_discarded())
      config["pad_token_id"] = pad;
    const auto shape = parse_model_shape(config.dump(), "config.json");
    EXPECT_EQ(parse_model_shape(print_hf_config(shape), "printed").padding_row,
              shape.padding_row);
    return shape.padding_row;
  };
  const nlohmann::json absent(nlohmann::json::value_t::discarded);
  for (const auto& family : troupe::model_families()) {
    const bool pads = family != "gpt2" && family != "gpt_neox";
    const auto usual = troupe::find_family(family)->defaults.pad;
    EXPECT_EQ(row(family, 3), pads ? 3 : -1) << family;
    EXPECT_EQ(row(family, -1), pads ? 9 : -1) << family;
    EXPECT_EQ(row(family, nullptr), -1) << family;
    EXPECT_EQ(row(family, absent), usual) << family;
  }
}

TEST(ModelShape, TensorParallelSplitsHeadsAndWidths) {
  auto shape = parse_model_shape(tiny_llama, "config.json");
  std::map<std::string, int> split;
  for (const auto& parameter : parameters(shape))
    split[parameter.name] = parameter.split_dim;
  EXPECT_EQ(split["model.embed_tokens.weight"], 0);
  EXPECT_EQ(split["model.layers.1.self_attn.q_proj.weight"], 0);
  EXPECT_EQ(split["model.layers.1.self_attn.o_proj.weight"], 1);
  EXPECT_EQ(split["model.layers.1.mlp.down_proj.weight"], 1);
  EXPECT_EQ(split["model.norm.weight"], -1);
  EXPECT_EQ(split["lm_head.weight"], 0);
}

TEST(ModelShape, OnlyMatricesDecay) {
  for (const auto& parameter :
       parameters(parse_model_shape(changed("attention_bias", true), "c")))
    EXPECT_EQ(parameter.decay, !parameter.vector) << parameter.name;
}

TEST(ModelShape, AScalarHeadReplacesTheLanguageModelHead) {
  auto shape = parse_model_shape(tiny_llama, "config.json");
  EXPECT_EQ(parameters(shape).back().name, "lm_head.weight");
  shape.scalar_head = true;
  const auto last = parameters(shape).back();
  EXPECT_EQ(last.name, "score.weight");
  EXPECT_EQ(last.rows, 1);
  EXPECT_EQ(last.cols, 8);
  EXPECT_EQ(last.layer, 2);
}

TEST(ModelShape, ForwardFlopsCountAMultiplyAddAsTwo) {
  const auto shape = parse_model_shape(tiny_llama, "config.json");
  // layer: q 8x8, k, v 4x8, o 8x8, mlp 3 x 8x12; head 10x8
  const double weights = 2 * (64 + 32 + 32 + 64 + 288) + 80;
  EXPECT_DOUBLE_EQ(forward_flops(shape, 5, 0), 2 * 5 * weights);
  // one sequence of 4: causal half of q k^T and p v, 2 layers, width 8
  EXPECT_DOUBLE_EQ(forward_flops(shape, 0, 16), 2 * (0.5 * 2 * 2 * 16 * 8));
}

TEST(ModelShape, PrintedConfigKeepsEveryField) {
  auto shape = parse_model_shape(tiny_llama, "config.json");
  shape.scalar_head = true;
  shape.rope.scaling = troupe::RopeScaling::linear;
  shape.rope.factor = 2.5;
  shape.stored_dtype = DType::bf16;
  shape.mlp_bias = shape.attention_bias = shape.output_bias = true;
  shape.bos = 1;
  shape.pad = shape.padding_row = 0;
  const auto text = print_hf_config(shape);
  EXPECT_EQ(parse_model_shape(text, "printed"), shape);
  EXPECT_THAT(text, ::testing::HasSubstr("LlamaForSequenceClassification"));
  EXPECT_THAT(text, ::testing::HasSubstr(R"("0": "LABEL_0")"));
}

TEST(ModelShape, Qwen3HasASlidingWindowFromALayerOnAndPrintsIt) {
  auto text = changed("model_type", "qwen3");
  auto json = nlohmann::json::parse(text);
  json["architectures"] = {"Qwen3ForCausalLM"};
  json["num_hidden_layers"] = 3;
  json["use_sliding_window"] = true;
  json["sliding_window"] = 64;
  json["max_window_layers"] = 1;
  const auto shape = parse_model_shape(json.dump(), "config.json");
  EXPECT_EQ(shape.window_of(0), 0);
  EXPECT_EQ(shape.window_of(1), 64);
  EXPECT_EQ(shape.window_of(2), 64);
  EXPECT_EQ(parse_model_shape(print_hf_config(shape), "printed"), shape);
}

TEST(ModelShape, MinistralHasAWindowInTheLayersOfItsListOrInAll) {
  auto json = nlohmann::json::parse(changed("model_type", "ministral"));
  json["architectures"] = {"MinistralForCausalLM"};
  const auto windows = [&json] {
    const auto shape = parse_model_shape(json.dump(), "config.json");
    EXPECT_EQ(parse_model_shape(print_hf_config(shape), "printed"), shape);
    return std::vector{shape.window_of(0), shape.window_of(1)};
  };
  EXPECT_THAT(windows(), ElementsAre(4096, 4096)) << "as transformers";
  json["sliding_window"] = 64;
  json["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_THAT(windows(), ElementsAre(0, 64));
  json["sliding_window"] = nullptr;
  EXPECT_THAT(why_not(json.dump()), ::testing::HasSubstr("layer_types"));
  json.erase("layer_types");
  EXPECT_THAT(windows(), ElementsAre(0, 0));
}

nlohmann::json windowed_qwen() {
  auto json = nlohmann::json::parse(changed("model_type", "qwen2"));
  json["architectures"] = {"Qwen2ForCausalLM"};
  json["num_hidden_layers"] = 3;
  json["use_sliding_window"] = true;
  json["sliding_window"] = 64;
  return json;
}

TEST(ModelShape, AllOrNoLayersOfAQwen2HaveASlidingWindow) {
  auto json = windowed_qwen();
  json["max_window_layers"] = 0;
  const auto shape = parse_model_shape(json.dump(), "config.json");
  EXPECT_EQ(shape.window_of(0), 64);
  EXPECT_EQ(parse_model_shape(print_hf_config(shape), "printed"), shape);
  json["sliding_window"] = nullptr;
  EXPECT_EQ(parse_model_shape(json.dump(), "config.json").window_of(2), 0);
}

TEST(ModelShape, PrintedLayerTypesOfAQwen2EqualThoseRead) {
  auto json = windowed_qwen();
  json["max_window_layers"] = 3;
  json["layer_types"]
    = {"sliding_attention", "full_attention", "sliding_attention"};
  const auto shape = parse_model_shape(json.dump(), "config.json");
  EXPECT_EQ(shape.window_of(0), 64);
  EXPECT_EQ(shape.window_of(1), 0);
  EXPECT_EQ(parse_model_shape(print_hf_config(shape), "printed"), shape);
  EXPECT_EQ(nlohmann::json::parse(print_hf_config(shape))["layer_types"],
            json["layer_types"]);
}

TEST(ModelShape, KvHeadsDefaultToTheNumberOfHeads) {
  auto json = windowed_qwen();
  json["num_key_value_heads"] = nullptr;
  EXPECT_EQ(parse_model_shape(json.dump(), "config.json").num_kv_heads, 2);
}

TEST(ModelShape, StopTokensComeFromGenerationConfig) {
  const troupe::support::TempFolder folder;
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
  };
  write("config.json", tiny_llama);
  EXPECT_THAT(read_model_shape(folder.path()).ends(), ElementsAre(2, 3));
  EXPECT_THAT(read_end_tokens(folder.path()), ElementsAre(2, 3));
  write("generation_config.json", R"({"temperature": 0.6})");
  EXPECT_THAT(read_model_shape(folder.path()).ends(), ElementsAre(2, 3));
  write("generation_config.json", R"({"eos_token_id": [7, 2]})");
  const auto shape = read_model_shape(folder.path());
  EXPECT_THAT(shape.ends(), ElementsAre(7, 2));
  EXPECT_THAT(shape.eos, ElementsAre(2, 3));
  EXPECT_THAT(read_end_tokens(folder.path()), ElementsAre(7, 2));
  write("generation_config.json", R"({"eos_token_id": -1})");
  EXPECT_THROW(read_model_shape(folder.path()), ConfigError);
}

TEST(Dropout, IsFoundInACheckpointsConfig) {
  const auto asked = [](const std::string& json) {
    return troupe::asked_dropout(json, "config.json").value_or("none");
  };
  EXPECT_EQ(asked(R"({"model_type": "llama"})"), "none");
  EXPECT_EQ(asked(R"({"model_type": "llama", "attention_dropout": 0.05})"),
            "attention_dropout: 0.05");
  EXPECT_EQ(asked(R"({"model_type": "gpt2", "attn_pdrop": 0.0,
                      "embd_pdrop": 0, "resid_pdrop": 0.0})"),
            "none");
  EXPECT_EQ(asked(R"({"model_type": "gpt2", "attn_pdrop": 0.0,
                      "embd_pdrop": 0.2, "resid_pdrop": 0.0})"),
            "embd_pdrop: 0.2");
  EXPECT_EQ(asked(R"({"model_type": "gpt2"})"), "attn_pdrop: 0.1")
    << "as transformers";
  EXPECT_THROW(asked(R"({"model_type": "gpt2", "attn_pdrop": "much"})"),
               ConfigError);
  ModelShape shape = troupe::gpt2_family().traits;
  shape.family = "gpt2";
  EXPECT_EQ(asked(print_hf_config(shape)), "none") << "as it was trained";
}

TEST(ModelShape, MistakesNameFileAndKey) {
  EXPECT_EQ(
    why_not(changed("model_type", "gpt9")),
    "config.json: model_type: expected a supported family (llama, "
    "qwen2, qwen3, qwen3_moe, mistral, ministral, mixtral, gemma, gemma2, "
    "gemma3_text, gpt2, gpt_neox, granite, phi3, smollm3, olmo2, olmo3, glm, "
    "glm4, glm4_moe, olmoe), got \"gpt9\"");
  EXPECT_EQ(why_not(changed("vocab_size", nullptr)),
            "config.json: vocab_size: expected a whole number from 1 to "
            "16777216, got nothing");
  EXPECT_EQ(why_not(changed("hidden_size", "8")),
            "config.json: hidden_size: expected a whole number from 1 to "
            "16777216, got \"8\"");
  EXPECT_EQ(why_not(changed("num_key_value_heads", 3)),
            "config.json: num_key_value_heads: expected a divisor of "
            "num_attention_heads (2), got 3");
  EXPECT_EQ(why_not(changed("hidden_act", "gelu")),
            "config.json: hidden_act: expected \"silu\", got \"gelu\"");
  EXPECT_EQ(why_not(changed("torch_dtype", "int8")),
            "config.json: torch_dtype: expected \"float32\", \"bfloat16\" or "
            "\"float16\", got \"int8\"");
  EXPECT_EQ(why_not(changed("rope_scaling", {{"type", "ntk"}, {"factor", 2}})),
            "config.json: rope_scaling.type: expected \"default\", \"linear\", "
            "\"dynamic\", \"llama3\", \"yarn\" or \"longrope\", got \"ntk\"");
  EXPECT_EQ(why_not(changed("rope_scaling",
                            {{"type", "longrope"}, {"short_factor", {1.0}}})),
            "config.json: rope_scaling.short_factor: expected 2 numbers, one "
            "per frequency, got [1.0]");
  EXPECT_EQ(why_not(changed("rope_scaling",
                            {{"type", "yarn"}, {"factor", 2}, {"mscale", 1}})),
            "config.json: rope_scaling.mscale: expected no such key "
            "(DeepSeek's scale of the scores), got 1");
  EXPECT_EQ(why_not(changed("partial_rotary_factor", 0.5)),
            "config.json: partial_rotary_factor: expected 1 (whole heads "
            "rotate), got 0.5");
  EXPECT_EQ(why_not(changed("rope_parameters", {{"rope_type", "linear"}})),
            "config.json: rope_parameters.factor: expected a number > 0, got "
            "nothing");
  EXPECT_EQ(
    why_not(changed("architectures", {"LlamaForSequenceClassification"})),
    "config.json: num_labels: expected one label (a scalar head), got "
    "nothing");
  EXPECT_EQ(why_not("[1]"),
            "config.json: expected a JSON object, got another value; try a "
            "folder in Hugging Face format");
  EXPECT_THAT(why_not("{"), ::testing::StartsWith(
                              "config.json: expected JSON, "
                              "got something else (parse error at line 1"));
  const std::string deep(200'000, '[');
  EXPECT_THAT(
    why_not("{\"hidden_size\": " + deep + std::string(200'000, ']') + "}"),
    ::testing::StartsWith("config.json: expected JSON of at most 500 levels"));
  EXPECT_THROW(troupe::asked_dropout("{\"attention_dropout\": " + deep
                                       + std::string(200'000, ']') + "}",
                                     std::string("config.json")),
               ConfigError);
  EXPECT_THAT(why_not(R"({"vocab_size": 1e999})"),
              ::testing::StartsWith("config.json: expected JSON"));
}

TEST(ModelShape, MissingFolderIsNamed) {
  try {
    read_model_shape("/nonexistent/model");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "/nonexistent/model: expected a model's "
                               "config.json, got no readable file; try a "
                               "folder in Hugging Face format");
  }
}

} // namespace
