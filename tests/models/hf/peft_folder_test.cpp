#include "config/base/error.hpp"
#include "models/hf/merge_adapters.hpp"
#include "models/hf/peft_folder.hpp"
#include "models/hf/stored_parameters.hpp"

#include "tests/support/models/io_support.hpp"
#include "tests/support/places.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace troupe::models {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::read_text;
using testing::write_text;
using troupe::testing::TempFolder;

fs::path base_folder() {
  return support::source_folder() / "tests/golden/data/models/qwen3";
}

ModelShape adapted_shape() {
  ModelShape shape = read_model_shape(base_folder());
  shape.lora = {.rank = 2, .alpha = 6, .targets = {"q_proj", "down_proj"}};
  return shape;
}

/// Values of every adapter: 0.1, 0.2, 0.3, ..
class PeftFolder : public ::testing::Test {
protected:
  PeftFolder() {
    for (const ParameterShape& parameter : list_) {
      auto& own = values_.emplace_back();
      for (std::int64_t i = 0; i < parameter.num_elements(); ++i)
        own.push_back(0.1F * static_cast<float>(i + 1));
    }
    std::vector<ParameterValues> all;
    for (std::size_t i = 0; i < list_.size(); ++i)
      all.push_back({&list_[i], std::as_bytes(std::span(values_[i]))});
    const FileTensors files(all, DType::f32);
    HfFolderOptions options;
    options.source = base_folder();
    save_peft_folder(saved(), adapted_shape(), base_folder().string(),
                     files.tensors(), options);
  }
  fs::path saved() const {
    return folder_ / "adapters";
  }
  void rewrite(const std::string& key, const nlohmann::json& value) {
    auto config
      = nlohmann::json::parse(read_text(saved() / "adapter_config.json"));
    config[key] = value;
    write_text(saved() / "adapter_config.json", config.dump());
  }
  std::string refusal() const {
    try {
      read_peft_config(saved());
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  TempFolder folder_;
  std::vector<ParameterShape> list_ = adapters(adapted_shape());
  std::vector<std::vector<float>> values_;
};

TEST_F(PeftFolder, IsReadAsItWasWritten) {
  EXPECT_TRUE(is_peft_folder(saved()));
  EXPECT_FALSE(is_peft_folder(base_folder()));
  const PeftConfig config = read_peft_config(saved());
  EXPECT_EQ(config.lora, adapted_shape().lora);
  EXPECT_EQ(config.base_model, base_folder().string());
  const StoredWeights stored = open_peft_weights(saved(), adapted_shape());
  EXPECT_EQ(stored.names().size(), list_.size());
  EXPECT_TRUE(fs::exists(saved() / "adapter_model.safetensors"));
}

TEST_F(PeftFolder, AnotherRankIsRefusedWithBothShapes) {
  ModelShape other = adapted_shape();
  other.lora.rank = 4;
  try {
    open_peft_weights(saved(), other);
    FAIL() << "not refused";
  } catch (const ConfigError& error) {
    const auto width = std::to_string(other.hidden_size);
    EXPECT_THAT(error.what(), HasSubstr("[4, " + width + "]"));
    EXPECT_THAT(error.what(), HasSubstr("[2, " + width + "]"));
  }
}

TEST_F(PeftFolder, VariantsThatComputeSomethingElseAreRefused) {
  EXPECT_EQ(refusal(), "");
  rewrite("use_dora", true);
  EXPECT_THAT(refusal(), HasSubstr("use_dora"));
  rewrite("use_dora", false);
  rewrite("rank_pattern", {{"q_proj", 8}});
  EXPECT_THAT(refusal(), HasSubstr("rank_pattern"));
  rewrite("rank_pattern", nlohmann::json::object());
  rewrite("peft_type", "IA3");
  EXPECT_THAT(refusal(), HasSubstr("IA3"));
  rewrite("peft_type", "LORA");
  rewrite("target_modules", "all-linear");
  EXPECT_THAT(refusal(), HasSubstr("target_modules"));
}

TEST_F(PeftFolder, MergingAddsTheScaledProductToAdaptedMatricesAlone) {
  merge_adapters(base_folder(), saved(), folder_ / "merged", DType::f32, {});
  const ModelShape shape = read_model_shape(folder_ / "merged");
  const StoredWeights before = open_model_weights(base_folder(), shape);
  const StoredWeights after = open_model_weights(folder_ / "merged", shape);
  for (const ParameterShape& parameter : parameters(shape)) {
    std::vector<float> a(static_cast<std::size_t>(parameter.num_elements()));
    std::vector<float> b = a;
    read_stored_box(before.at(parameter.file_name()), parameter, 0,
                    parameter.rows, 0, parameter.cols, a.data());
    read_stored_box(after.at(parameter.file_name()), parameter, 0,
                    parameter.rows, 0, parameter.cols, b.data());
    const bool adapted = parameter.name.ends_with("q_proj.weight")
                         || parameter.name.ends_with("down_proj.weight");
    if (!adapted) {
      EXPECT_EQ(a, b) << parameter.name;
      continue;
    }
    // row o, column i: 3 (0.1 (2 o + 1) 0.1 (i + 1) + 0.1 (2 o + 2) 0.1 (in + i
    // + 1))
    const std::int64_t row = 5;
    const std::int64_t col = 7;
    const auto at = static_cast<std::size_t>(row * parameter.cols + col);
    const double want = 0.03
                        * ((2 * row + 1) * (col + 1)
                           + (2 * row + 2) * (parameter.cols + col + 1.0));
    EXPECT_NEAR(b[at] - a[at], want, 1e-4 * want) << parameter.name;
  }
}

} // namespace
} // namespace troupe::models
