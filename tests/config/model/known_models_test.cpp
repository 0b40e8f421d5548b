// Shapes that are known without a download.
#include "config/model/known_models.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

using namespace troupe;

TEST(KnownModels, HaveTheParametersOfTheirCards) {
  for (const auto& model : known_models()) {
    const auto ours = static_cast<double>(num_parameters(model.shape)) / 1e9;
    EXPECT_LT(std::abs(ours / model.billions - 1), 0.01)
      << model.name << ": " << ours << " not " << model.billions;
  }
}

TEST(KnownModels, AreAtLeastFiftyAndEachSaysItsSource) {
  std::set<std::string> names;
  for (const auto& model : known_models()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_NE(std::string(model.source), "") << model.name;
  }
  EXPECT_GE(names.size(), 50u);
}

TEST(KnownModels, CutIntoHeadsAndLayersAsAShapeMust) {
  for (const auto& model : known_models()) {
    const auto& shape = model.shape;
    EXPECT_EQ(shape.num_heads % shape.num_kv_heads, 0) << model.name;
    EXPECT_GT(shape.head_dim, 0) << model.name;
    EXPECT_EQ(shape.head_dim % 2, 0) << model.name;
  }
}

TEST(KnownModels, AModelTrainedFromAKnownOneHasItsShape) {
  const auto named = [](const char* name) -> std::string {
    const auto* model = find_known_model(name);
    return model ? model->name : "";
  };
  EXPECT_EQ(named("Qwen/Qwen2.5-7B-Instruct"), "Qwen/Qwen2.5-7B");
  EXPECT_EQ(named("/models/Qwen2.5-Math-7B-Instruct/"), "Qwen/Qwen2.5-Math-7B");
  EXPECT_EQ(named("Qwen/Qwen3-30B-A3B-Base"), "Qwen/Qwen3-30B-A3B");
  EXPECT_EQ(named("Qwen/Qwen3-4B-Thinking-2507"), "Qwen/Qwen3-4B");
  EXPECT_EQ(named("meta-llama/Meta-Llama-3-8B-Instruct"),
            "meta-llama/Llama-3-8B");
  EXPECT_EQ(named("meta-llama/Llama-2-70b-chat-hf"), "meta-llama/Llama-2-70b");
  EXPECT_EQ(named("OpenRLHF/Llama-3-8b-sft-mixture"), "meta-llama/Llama-3-8B");
  EXPECT_EQ(named("OpenRLHF/Llama-3-8b-rm-700k"), "meta-llama/Llama-3-8B");
  EXPECT_EQ(named("deepseek-ai/deepseek-llm-7b-chat"),
            "deepseek-ai/deepseek-llm-7b");
  EXPECT_EQ(named("mistralai/Mistral-7B-Instruct-v0.2"),
            "mistralai/Mistral-7B-v0.1");
  EXPECT_EQ(named("mistralai/Mistral-7B-Instruct-v0.3"),
            "mistralai/Mistral-7B-v0.3");
  EXPECT_EQ(named("mistralai/Mixtral-8x7B-Instruct-v0.1"),
            "mistralai/Mixtral-8x7B-v0.1");
  EXPECT_EQ(named("mistralai/Mixtral-8x22B-Instruct-v0.1"),
            "mistralai/Mixtral-8x22B-v0.1");
  EXPECT_EQ(named("sfairXC/FsfairX-Gemma2-RM-v0.1"), "google/gemma-2-9b");
  EXPECT_EQ(named("Skywork/Skywork-Reward-V2-Qwen3-1.7B"), "Qwen/Qwen3-1.7B");
  EXPECT_EQ(named("Skywork/Skywork-Reward-V2-Llama-3.1-8B-40M"),
            "meta-llama/Llama-3.1-8B");
}

TEST(KnownModels, ANameThatOnlyBeginsLikeOneIsUnknown) {
  EXPECT_EQ(find_known_model("Qwen/Qwen2.5-7B-VL"), nullptr);
  EXPECT_EQ(find_known_model("someone/Llama-3-8B-32-experts"), nullptr);
  EXPECT_EQ(find_known_model("Qwen/Qwen3"), nullptr);
  EXPECT_EQ(find_known_model(""), nullptr);
}

TEST(KnownModels, EveryNameOfTheTableIsFoundAsItself) {
  for (const auto& model : known_models()) {
    const auto* found = find_known_model(model.name);
    ASSERT_NE(found, nullptr) << model.name;
    EXPECT_EQ(std::string(found->name), model.name);
  }
}
