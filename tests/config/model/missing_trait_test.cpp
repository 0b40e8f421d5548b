#include "config/base/error.hpp"
#include "config/model/family.hpp"
#include "config/model/missing_trait.hpp"

#include <gmock/gmock.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr const char* not_yet_computed[]
  = {"ministral3", "gpt_oss",     "qwen3_next",
     "qwen2_moe",  "deepseek_v2", "deepseek_v3"};

TEST(MissingTrait, NamesWhatAFamilyNeedsInTheErrorThatRefusesIt) {
  for (const std::string name : not_yet_computed) {
    const auto trait = missing_trait(name);
    EXPECT_THAT(trait, HasSubstr("does not compute")) << name;
    try {
      parse_model_shape(R"({"model_type": ")" + name + "\"}", "config.json");
      ADD_FAILURE() << name << " is read";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(trait)) << name;
    }
  }
}

TEST(MissingTrait, NothingIsMissingInFamiliesThatAreReadOrUnknown) {
  for (const auto& name : model_families())
    EXPECT_EQ(missing_trait(name), "") << name;
  EXPECT_EQ(missing_trait("gpt9"), "");
}

} // namespace
} // namespace troupe
