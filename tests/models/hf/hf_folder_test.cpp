#include "models/hf/hf_folder.hpp"
#include "models/hf/stored_parameters.hpp"

#include "tests/support/models/golden.hpp"
#include "tests/support/models/io_support.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace troupe::models {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::golden_folder;
using ::testing::HasSubstr;
using testing::read_text;
using testing::write_text;
using troupe::testing::TempFolder;

/// All parameters of a golden model as tensors to store, in float.
std::vector<TensorToStore> stored_floats(const StoredWeights& weights,
                                         const ModelShape& shape) {
  std::vector<TensorToStore> tensors;
  for (const ParameterShape& parameter : parameters(shape)) {
    const StoredTensor& tensor = weights.at(parameter.file_name());
    if (std::ranges::find(tensors, tensor.name, &TensorToStore::name)
        != tensors.end())
      continue;
    tensors.push_back(
      {tensor.name, tensor.shape, tensor.type(), tensor.type(), tensor.data});
  }
  return tensors;
}

class GoldenModelFolder : public ::testing::TestWithParam<std::string> {
protected:
  fs::path source() const {
    return golden_folder() / "models" / GetParam();
  }
};

TEST_P(GoldenModelFolder, SavesWhatItLoaded) {
  TROUPE_NEEDS_DATA(source());
  require_model_folder(source());
  const ModelShape shape = read_model_shape(source());
  const StoredWeights weights = open_model_weights(source(), shape);
  const TempFolder folder;
  write_text(folder / "tokenizer.json", "{\"mine\": 1}");
  const fs::path saved = folder / "saved/actor";
  HfFolderOptions options;
  options.stored = shape.stored_dtype;
  options.store.max_shard_bytes = 10'000;
  options.source = folder.path();
  save_hf_folder(saved, shape, stored_floats(weights, shape), options);

  EXPECT_EQ(read_model_shape(saved), shape);
  EXPECT_EQ(read_text(saved / "tokenizer.json"), "{\"mine\": 1}");
  EXPECT_TRUE(fs::exists(saved / "generation_config.json"));
  EXPECT_TRUE(fs::exists(saved / "model.safetensors.index.json"));
  const StoredWeights again = open_model_weights(saved, shape);
  for (const ParameterShape& parameter : parameters(shape)) {
    const auto& a = weights.at(parameter.file_name());
    const auto& b = again.at(parameter.file_name());
    EXPECT_EQ(a.dtype, b.dtype);
    EXPECT_EQ(a.shape, b.shape);
    EXPECT_TRUE(
      std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end()))
      << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModelFolder,
                         ::testing::ValuesIn(testing::golden_models(true)),
                         [](const auto& model) { return model.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenModelFolder);

TEST(HfFolder, ScalarHeadIsSavedAsSequenceClassificationWithOneLabel) {
  const fs::path source = golden_folder() / "models/llama_score";
  TROUPE_NEEDS_DATA(source);
  const ModelShape shape = read_model_shape(source);
  const StoredWeights weights = open_model_weights(source, shape);
  const TempFolder folder;
  save_hf_folder(folder.path(), shape, stored_floats(weights, shape), {});
  const json config = json::parse(read_text(folder / "config.json"));
  EXPECT_EQ(config.at("architectures"),
            json({"LlamaForSequenceClassification"}));
  EXPECT_EQ(config.at("num_labels"), 1);
  EXPECT_EQ(config.at("id2label").size(), 1u);
  EXPECT_NE(StoredWeights::open(folder.path()).find("score.weight"), nullptr);
}

TEST(HfFolder, AMissingScalarHeadIsReportedAndOtherTensorsAreRequired) {
  const fs::path source = golden_folder() / "models/llama_gqa";
  TROUPE_NEEDS_DATA(source);
  ModelShape shape = read_model_shape(source);
  shape.scalar_head = true;
  bool missing = false;
  open_model_weights(source, shape, &missing);
  EXPECT_TRUE(missing);
  EXPECT_THROW(open_model_weights(source, shape), ConfigError);
}

/// Writes a folder as models of images and text are published: `config` inside
/// another one, and `prefix` before names.
void write_image_model(const fs::path& folder, json config,
                       const StoredWeights& text, const std::string& prefix) {
  fs::create_directories(folder);
  config.erase("architectures");
  write_text(folder / "config.json",
             json{{"model_type", "gemma3"},
                  {"architectures", {"Gemma3ForConditionalGeneration"}},
                  {"text_config", config},
                  {"vision_config", {{"model_type", "siglip_vision_model"}}}}
               .dump());
  std::vector<TensorToStore> tensors;
  for (const std::string& name : text.names()) {
    const auto& tensor = text.at(name);
    tensors.push_back(
      {prefix + name, tensor.shape, DType::f32, DType::f32, tensor.data});
  }
  write_safetensors(folder / "model.safetensors", tensors);
}

TEST(HfFolder, TheTextPartOfAModelOfImagesAndTextIsAModel) {
  const fs::path source = golden_folder() / "models/gemma3";
  TROUPE_NEEDS_DATA(source);
  const ModelShape shape = read_model_shape(source);
  const StoredWeights weights = open_model_weights(source, shape);
  const json config = json::parse(read_text(source / "config.json"));
  const TempFolder folder;
  write_image_model(folder.path(), config, weights, "language_model.");
  const ModelShape found = read_model_shape(folder.path());
  EXPECT_EQ(found, shape);
  const StoredWeights again = open_model_weights(folder.path(), found);
  for (const ParameterShape& parameter : parameters(shape))
    EXPECT_TRUE(std::ranges::equal(find_stored(again, parameter)->data,
                                   find_stored(weights, parameter)->data))
      << parameter.name;
}

// GLM-4.5 has a layer after its last one that predicts a second token.
TEST(HfFolder, LayersThatPredictASecondTokenAreLeftOut) {
  const fs::path source = golden_folder() / "models/glm4_moe";
  TROUPE_NEEDS_DATA(source);
  const ModelShape shape = read_model_shape(source);
  const StoredWeights weights = open_model_weights(source, shape);
  const std::vector<ParameterShape> all = parameters(shape);
  const auto refuse = [&](std::initializer_list<const char*> more) {
    std::vector<TensorToStore> tensors = stored_floats(weights, shape);
    const TensorToStore some = tensors.back();
    for (const char* name : more) {
      tensors.push_back(some);
      tensors.back().name = name;
    }
    const TempFolder folder;
    write_safetensors(folder / "model.safetensors", tensors);
    refuse_unknown_tensors(StoredWeights::open(folder.path()), all);
  };
  EXPECT_NO_THROW(refuse({"model.layers.2.eh_proj.weight",
                          "model.layers.2.self_attn.q_proj.weight"}));
  EXPECT_THROW(refuse({"model.layers.2.self_attn.q_proj.weight"}), ConfigError)
    << "a layer like the others is missing in config.json";
}

TEST(HfFolder, CorrectionsOfExpertsStayFloats) {
  const fs::path source = golden_folder() / "models/glm4_moe";
  TROUPE_NEEDS_DATA(source);
  const ModelShape shape = read_model_shape(source);
  const StoredWeights weights = open_model_weights(source, shape);
  const TempFolder folder;
  save_hf_folder(folder.path(), shape, stored_floats(weights, shape),
                 {.stored = DType::bf16});
  const StoredWeights saved = StoredWeights::open(folder.path());
  for (const ParameterShape& parameter : parameters(shape))
    EXPECT_EQ(saved.at(parameter.file_name()).type(),
              parameter.balances ? DType::f32 : DType::bf16)
      << parameter.name;
}

TEST(HfFolder, NamesTensorAndShapesThatDoNotFit) {
  const fs::path source = golden_folder() / "models/llama_gqa";
  TROUPE_NEEDS_DATA(source);
  const ModelShape stored = read_model_shape(source);
  ModelShape shape = stored;
  shape.intermediate_size += 1;
  try {
    open_model_weights(source, shape);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("model.safetensors"));
    EXPECT_THAT(error.what(), HasSubstr("model.layers.0.mlp."));
    EXPECT_THAT(error.what(),
                HasSubstr(std::to_string(stored.intermediate_size)));
    EXPECT_THAT(error.what(),
                HasSubstr(std::to_string(shape.intermediate_size)));
  }
  shape = stored;
  shape.num_layers += 1;
  try {
    open_model_weights(source, shape);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(
      error.what(),
      HasSubstr("model.layers." + std::to_string(stored.num_layers) + "."));
  }
}

TEST(HfFolder, AnInvalidFolderNamesItsMistake) {
  const TempFolder folder;
  const auto complaint = [&](const fs::path& path) -> std::string {
    try {
      require_model_folder(path, "models.actor.path");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(complaint(folder / "none"), HasSubstr("nothing of that name"));
  EXPECT_THAT(complaint(folder.path()), HasSubstr("without config.json"));
  EXPECT_THAT(complaint(folder.path()), HasSubstr("models.actor.path"));
  write_text(folder / "config.json", "{}");
  EXPECT_EQ(complaint(folder.path()), "");
  EXPECT_THAT(complaint(folder / "config.json"), HasSubstr("got a file"));
}

TEST(HfFolder, AFolderThatCannotBeCreatedIsAFailure) {
  const TempFolder folder;
  write_text(folder / "file", "");
  EXPECT_THROW(save_hf_folder(folder / "file/x", ModelShape{}, {}, {}),
               FailureError);
}

} // namespace
} // namespace troupe::models
