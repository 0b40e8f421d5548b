#include "actors/worker_base/call_options.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troupe::actors {
namespace {

models::GenerateOptions options_with(const Settings& settings,
                                     const plans::ResponseRoom& room) {
  return generate_options(
    settings, {.name = "actor_gen", .kind = plans::CallKind::generate}, {},
    room);
}

TEST(CallOptions, AutoIsTheCacheSizeOfThePlan) {
  Settings settings;
  settings.cluster.device = "gpu";
  const plans::ResponseRoom room{
    .responses = 96, .sequences = 96, .cache_bytes = 5'000'000};
  EXPECT_EQ(options_with(settings, room).max_sequences, 96);
  EXPECT_EQ(options_with(settings, room).kv_cache_bytes, 5'000'000u);
}

TEST(CallOptions, AsManySequencesStartAsThePlanHasRoomForWhileTheyAreShort) {
  Settings settings;
  settings.cluster.device = "gpu";
  const plans::ResponseRoom room{
    .responses = 96, .sequences = 384, .cache_bytes = 5'000'000};
  EXPECT_EQ(options_with(settings, room).max_sequences, 384);
  EXPECT_EQ(options_with(settings, room).kv_cache_bytes, 5'000'000u);
  settings.rollout.max_sequences = 100;
  EXPECT_EQ(options_with(settings, room).max_sequences, 100);
}

TEST(CallOptions, ACallThatWritesMasksRecordsThem) {
  Settings settings;
  settings.rollout.logprobs = "sampled";
  EXPECT_EQ(options_with(settings, {}).record.logprobs,
            models::ResponseLogprobs::sampled);
  settings.algorithm.loss.sampling_mask = true;
  EXPECT_EQ(options_with(settings, {}).record.logprobs,
            models::ResponseLogprobs::sampled);
  EXPECT_EQ(generate_options(settings,
                             {.name = "actor_gen",
                              .kind = plans::CallKind::generate,
                              .writes = {"own_ids"},
                              .renames = {{"own_ids", "kept_ids"}}},
                             {}, {})
              .record.logprobs,
            models::ResponseLogprobs::masked);
}

TEST(CallOptions, ACallThatWritesExpertsRecordsThem) {
  EXPECT_FALSE(options_with(Settings{}, {}).record.experts);
  EXPECT_TRUE(generate_options({},
                               {.name = "actor_gen",
                                .kind = plans::CallKind::generate,
                                .writes = {"routed_experts"}},
                               {}, {})
                .record.experts);
}

TEST(CallOptions, NumbersOfTheSettingsAreTakenAsLimits) {
  Settings settings;
  settings.cluster.device = "cpu";
  settings.rollout.kv_cache_gb = 2;
  const plans::ResponseRoom room{
    .responses = 3, .sequences = 3, .cache_bytes = 100};
  EXPECT_EQ(options_with(settings, room).kv_cache_bytes, 2'000'000'000u);
  EXPECT_EQ(options_with(settings, room).max_sequences, 64)
    << "shorter answers than foreseen leave room for more";
  settings.rollout.max_sequences = 2;
  EXPECT_EQ(options_with(settings, room).max_sequences, 2);
  settings.rollout.kv_cache_gb.reset();
  EXPECT_EQ(options_with(settings, room).max_sequences, 2);
  EXPECT_EQ(options_with(settings, room).kv_cache_bytes, 100u);
}

TEST(CallOptions, WithoutACacheSizeMemoryIsUnlimited) {
  Settings settings;
  settings.cluster.device = "cpu";
  const auto options = options_with(settings, {});
  EXPECT_EQ(options.max_sequences, 64);
  EXPECT_GT(options.kv_cache_bytes, std::uint64_t{1} << 60);
}

TEST(TraceBytes, TheMasterGetsHalfAndWorkersShareTheRest) {
  Settings settings;
  settings.trace.max_gb = 4;
  plans::Cluster cluster;
  cluster.nodes = 8;
  cluster.devices_per_node = 8;
  cluster.workers_per_node = 8;
  EXPECT_EQ(trace_bytes_of_master(settings), 2'000'000'000u);
  EXPECT_EQ(trace_bytes_of_worker(settings, cluster), 31'250'000u);
  cluster.nodes = cluster.workers_per_node = 1;
  EXPECT_EQ(trace_bytes_of_worker(settings, cluster), 2'000'000'000u);
}

} // namespace
} // namespace troupe::actors
