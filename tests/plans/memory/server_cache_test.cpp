// Caches of servers, by the options of their commands.
#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "plans/memory/server_cache.hpp"
#include "plans/memory/server_memory.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/problem_support.hpp"

namespace troupe::plans {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;
constexpr std::uint64_t card = 100 * gib;

ServerCache cache_of(const std::string& options, const char* device = "cpu",
                     const char* kind = "vllm",
                     const std::map<std::string, std::string>& env = {}) {
  Settings settings;
  settings.rollout.engine.kind = kind;
  settings.rollout.engine.server_command = "python -m server " + options;
  settings.cluster.device = device;
  settings.cluster.env = env;
  return server_cache(settings, card);
}

TEST(ServerCache, OnHostsIsWhatTheVariableSays) {
  const auto with = [](const char* space) {
    return cache_of("", "cpu", "vllm", {{"VLLM_CPU_KVCACHE_SPACE", space}})
      .host_bytes;
  };
  EXPECT_EQ(with("8"), 8 * gib);
  EXPECT_EQ(with("0.5"), gib / 2);
  EXPECT_EQ(with("$SPACE"), 0U) << "not known";
  EXPECT_EQ(cache_of("", "cpu", "sglang").host_bytes, 0U);
}

TEST(ServerCache, OfADeviceIsAShareInEachWayToWriteIt) {
  const auto limit
    = [](const char* options) { return cache_of(options, "gpu").device_limit; };
  for (const char* options :
       {"--gpu-memory-utilization 0.5", "--gpu-memory-utilization=0.5",
        "--gpu_memory_utilization='0.5' --x",
        "--gpu-memory-utilization 0.9 "
        "--gpu-memory-utilization 0.5"})
    EXPECT_EQ(limit(options), card / 2) << options;
  EXPECT_NEAR(double(limit("")), 0.92 * card, 1e3) << "vLLM's default";
  EXPECT_EQ(limit("--gpu-memory-utilization $SHARE"), 0U) << "not known";
  EXPECT_EQ(cache_of("--mem-fraction-static 0.5", "gpu", "sglang").device_limit,
            card / 2);
  EXPECT_FALSE(cache_of("", "gpu", "sglang").is_known());
}

TEST(ServerCache, AShareThatNoServerTakesIsAMistake) {
  EXPECT_THROW(cache_of("--gpu-memory-utilization 1.5", "gpu"), ConfigError);
  EXPECT_THROW(cache_of("--mem-fraction-static=0", "gpu", "sglang"),
               ConfigError);
}

TEST(ServerCache, BytesOfTheCacheReplaceTheShare) {
  const auto bytes = [](const char* options) {
    const auto cache = cache_of(options, "gpu");
    EXPECT_EQ(cache.device_limit, 0U);
    return cache.device_bytes;
  };
  EXPECT_EQ(bytes("--kv-cache-memory-bytes 4096"), 4096U);
  EXPECT_EQ(bytes("--kv-cache-memory-bytes=2G"), 2 * gib);
  EXPECT_EQ(bytes("--kv-cache-memory-bytes 2g"), 2000000000U);
  EXPECT_EQ(bytes("--kv-cache-memory-bytes lots"), 0U);
}

TEST(ServerCache, ServersThatRunAlreadyAreNotKnown) {
  Settings settings;
  settings.rollout.engine.kind = "vllm";
  settings.rollout.engine.servers = {"http://node9:8000"};
  EXPECT_FALSE(server_cache(settings, card).is_known());
}

TEST(ServerCache, HoldsKeysAndValuesOfEachLayerPerToken) {
  const auto shape = shape_7b();
  const auto per_token
    = static_cast<std::uint64_t>(2 * shape.num_layers * shape.num_kv_heads
                                 * shape.head_dim)
      * size_bytes(DType::bf16);
  BatchSizes sizes{.engine = {.serves = true}};
  sizes.engine.cache.host_bytes = 10 * per_token;
  const auto tokens = [&](const char* strategy) {
    return server_cache_tokens(shape, DType::bf16, parse_strategy(strategy),
                               sizes);
  };
  EXPECT_EQ(tokens("d1"), 10U);
  EXPECT_EQ(tokens("t2"), 20U) << "each rank has its heads";
  sizes.engine.cache = {.device_limit = weight_bytes(shape, DType::bf16)};
  EXPECT_EQ(tokens("d1"), 0U) << "its weights come first";
  sizes.engine.cache.own_dtype = true;
  EXPECT_FALSE(tokens("d1"));
}

} // namespace
} // namespace troupe::plans
