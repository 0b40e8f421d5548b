// Generation by a server of a model that is trained by adapters
// (tests/support/vllm_stand_in.py): the base goes to it once, adapters at each
// version, and it computes what it computes with the merged model.
#include "models/hf/merge_adapters.hpp"

#include "tests/support/models/served_support.hpp"
#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using ::testing::HasSubstr;

class ServedAdaptersTest : public troupe::testing::ServedTest {
protected:
  ServedAdaptersTest() {
    auto spec = testing::actor_of(folder / "model");
    spec.adapters.lora = {
      .rank = 2, .alpha = 4, .targets = lora_targets(testing::small_shape())};
    load(std::move(spec));
    set_adapters(0.1);
  }
  /// Sets all adapters, so that they add much more than their start.
  void set_adapters(double size) {
    double number = 0;
    for (float& value : engine->parameters().plane(Plane::weight))
      value = static_cast<float>(size * std::cos(0.37 * ++number));
    engine->weights_changed();
  }
  std::uint64_t adapter_bytes() const {
    std::uint64_t count = 0;
    for (const auto& adapter : adapters(engine->shape()))
      count += static_cast<std::uint64_t>(adapter.num_elements());
    return count * sizeof(float);
  }
  ServedSpec spec(const std::string& fault = "") const {
    return {.server = testing::vllm_stand_in(folder.path(), fault)};
  }
};

TEST_F(ServedAdaptersTest, TheFirstUpdateHasAllWeightsLaterOnesTheAdapters) {
  const auto whole
    = weight_bytes(engine->shape(), DType::f32) + adapter_bytes();
  ServedGeneration served(spec());
  generate(served, "1");
  const auto first = served.take_report();
  EXPECT_EQ(first.updated_bytes, whole);
  EXPECT_LT(first.gap.value(), 1e-4);
  set_adapters(0.2);
  generate(served, "2");
  const auto second = served.take_report();
  EXPECT_EQ(second.updated_bytes, adapter_bytes());
  EXPECT_LT(second.gap.value(), 1e-4);
}

TEST_F(ServedAdaptersTest, TokensAreThoseOfTheMergedModel) {
  ServedGeneration served(spec());
  generate(served, "1");
  set_adapters(0.2);
  const auto adapted = generate(served, "2"); // of adapters that came alone
  engine->save_hf(folder / "adapters", DType::f32);
  merge_adapters(folder / "model", folder / "adapters", folder / "merged",
                 DType::f32, {});
  Engine merged(testing::actor_of(folder / "merged"));
  merged.load_weights();
  ServedGeneration whole(spec());
  const auto want = generate_of(merged, whole, "2");
  EXPECT_THAT(
    adapted.at("sequence_ids").as<std::int32_t>(),
    ::testing::ElementsAreArray(want.at("sequence_ids").as<std::int32_t>()));
  const auto here = adapted.at("logprobs").as<float>();
  const auto there = want.at("logprobs").as<float>();
  for (std::size_t i = 0; i < here.size(); ++i)
    EXPECT_NEAR(here[i], there[i], 1e-4) << i;
}

TEST_F(ServedAdaptersTest, AServerThatIsStartedAgainGetsItsBaseAgain) {
  // a check and three responses of the first version, a check, a response
  ServedGeneration served(spec("die_at:6"));
  generate(served, "1");
  const auto whole = served.take_report().updated_bytes;
  set_adapters(0.2);
  EXPECT_EQ(generate(served, "2").num_samples(), 3U);
  const auto report = served.take_report();
  EXPECT_EQ(report.restarts, 1U);
  EXPECT_EQ(report.updated_bytes, adapter_bytes() + whole);
  EXPECT_LT(report.gap.value(), 1e-4);
}

TEST_F(ServedAdaptersTest, AdaptersOfSeveralDevicesAreGathered) {
  auto gathering = spec();
  int gathered = 0;
  gathering.gather = [&](std::span<std::byte> whole) {
    ++gathered;
    std::ranges::copy(weights(), whole.begin());
  };
  ServedGeneration served(gathering);
  generate(served, "1");
  set_adapters(0.2);
  generate(served, "2");
  EXPECT_EQ(gathered, 2);
  EXPECT_LT(served.take_report().gap.value(), 1e-4);
}

TEST_F(ServedAdaptersTest, AMistakeIsFoundBeforeTheFirstToken) {
  ServedGeneration old(spec("old_adapters"));
  generate(old, "1");
  set_adapters(0.2);
  EXPECT_THAT(failure_of(old, "2"), HasSubstr("not those of the weights"));
  ServedGeneration lost(spec("drop_adapter"));
  EXPECT_THAT(failure_of(lost, "1"),
              HasSubstr("layers.1.mlp.down_proj.lora_B.weight: missing"));
}

} // namespace
} // namespace troupe::models
