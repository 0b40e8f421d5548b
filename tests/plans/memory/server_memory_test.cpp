// Hosts whose memory has servers that generate (rollout.engine).
#include "plans/memory/server_memory.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

namespace troupe::plans {
namespace {

const BatchSizes served_on_host{.engine
                                = {.serves = true, .serves_on_host = true}};

ServerBytes bytes_of(const Placement& placement, const BatchSizes& sizes,
                     std::uint32_t devices_per_node = 4,
                     const ModelShape& actor = shape_tiny()) {
  const auto ppo = make_ppo();
  auto plan = plan_all(ppo, placement, devices_per_node);
  plan.cluster.nodes = 4 / devices_per_node;
  return server_bytes(ppo, plan, {{"actor", actor}}, {{"actor", DType::bf16}},
                      sizes);
}

std::uint64_t tiny_parameters() {
  return num_parameters(shape_tiny());
}

TEST(ServerMemory, IsAFileItsCopyAndAModelPerServer) {
  const auto two = bytes_of(on(0, 1), served_on_host);
  EXPECT_EQ(two.files, 2 * 4 * tiny_parameters());
  EXPECT_EQ(two.updating, two.files);
  EXPECT_EQ(two.weights, 2 * 2 * tiny_parameters()); // bf16
}

TEST(ServerMemory, ATensorParallelGroupHasOneServerWhoseRanksCopyTheFile) {
  const Placement tensor{.devices = ranks(0, 3),
                         .strategy = parse_strategy("d2t2")};
  const auto bytes = bytes_of(tensor, served_on_host);
  EXPECT_EQ(bytes.files, 2 * 4 * tiny_parameters());
  EXPECT_EQ(bytes.updating, 2 * bytes.files);
}

// The plugin keeps what adapters are added to in place of the passing copy.
TEST(ServerMemory, AdaptersComeBesideTheWholeModel) {
  auto shape = shape_tiny();
  shape.lora = {.rank = 4, .alpha = 8, .targets = lora_targets(shape)};
  std::uint64_t count = tiny_parameters();
  for (const auto& adapter : adapters(shape))
    count += static_cast<std::uint64_t>(adapter.num_elements());
  ASSERT_GT(count, tiny_parameters());
  const auto bytes = bytes_of(on(0, 0), served_on_host, 4, shape);
  EXPECT_EQ(bytes.files, 4 * count);
  EXPECT_EQ(bytes.updating, 4 * count);
  EXPECT_EQ(bytes.weights, 2 * tiny_parameters());
}

TEST(ServerMemory, IsThatOfTheHostWithMost) {
  const auto whole = bytes_of(on(0, 3), served_on_host).on_host();
  EXPECT_EQ(bytes_of(on(0, 3), served_on_host, 2).on_host(), whole / 2);
  EXPECT_EQ(bytes_of(on(0, 3), served_on_host, 1).on_host(), whole / 4);
}

TEST(ServerMemory, WeightsAreInTheMemoryOfDevicesThatHaveTheirOwn) {
  auto sizes = served_on_host;
  sizes.engine.serves_on_host = false;
  EXPECT_EQ(bytes_of(on(0, 1), sizes).weights, 0U);
  EXPECT_GT(bytes_of(on(0, 1), sizes).files, 0U);
}

TEST(ServerMemory, EachRankHasACacheOfItsOwn) {
  auto sizes = served_on_host;
  sizes.engine.cache.host_bytes = 1000;
  EXPECT_EQ(bytes_of(on(0, 1), sizes).caches, 2000U);
  const Placement tensor{.devices = ranks(0, 3),
                         .strategy = parse_strategy("d2t2")};
  const auto bytes = bytes_of(tensor, sizes);
  EXPECT_EQ(bytes.caches, 4000U);
  EXPECT_EQ(bytes.on_host(), bytes.of_model() + 4000U);
}

TEST(ServerMemory, OfOurOwnEngineIsNothing) {
  EXPECT_EQ(bytes_of(on(0, 1), {}).on_host(), 0U);
}

} // namespace
} // namespace troupe::plans
