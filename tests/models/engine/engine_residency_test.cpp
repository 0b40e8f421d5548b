// Engines whose planes are away between calls, on any device: they compute the
// bits of engines whose planes stay.
#include "models/engine/engine.hpp"
#include "models/generate/generate_options.hpp"
#include "models/parallel/parameters.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"

#include <array>

namespace troupe::models {
namespace {

using troupe::testing::first_samples;
using troupe::testing::ParallelReplica;
using troupe::testing::random_sequences;
using troupe::testing::small_shape;
using troupe::testing::TempFolder;
using troupe::testing::write_random_model;

constexpr std::array all_planes{Plane::weight, Plane::m, Plane::v};

class EngineResidency : public ::testing::TestWithParam<const char*> {
protected:
  EngineResidency() {
    write_random_model(folder_ / "model", small_shape(), 1);
  }
  ParallelReplica replica() const {
    return {troupe::testing::trained_actor(folder_ / "model"), GetParam()};
  }
  static void train(ParallelReplica& replica) {
    TrainSpec train;
    train.fn = "sft_loss";
    train.mini_batches = {first_samples(4), first_samples(6)};
    train.micro_batch_tokens = 30;
    replica.train(train, random_sequences(6, 75, 14, 2));
  }
  static void offload(ParallelReplica& replica) {
    replica.run([](Engine& engine, RunContext&, std::uint32_t) {
      engine.offload(all_planes);
    });
  }
  static void reload(ParallelReplica& replica) {
    replica.run([](Engine& engine, RunContext&, std::uint32_t) {
      engine.reload(all_planes);
    });
  }

private:
  TempFolder folder_;
};

TEST_P(EngineResidency, PlanesThatWereAwayTrainToTheSameBits_I8) {
  ParallelReplica stays = replica(), leaves = replica(), beside = replica();
  train(stays);
  train(leaves);
  offload(leaves);
  train(beside); // takes the memory that is free now
  for (const Plane plane : all_planes)
    EXPECT_EQ(leaves.plane(plane), stays.plane(plane)) << "read while away";
  reload(leaves);
  train(stays);
  train(leaves);
  offload(leaves);
  train(beside);
  for (const Plane plane : all_planes)
    EXPECT_EQ(leaves.plane(plane), stays.plane(plane));
}

INSTANTIATE_TEST_SUITE_P(All, EngineResidency,
                         ::testing::Values("d1", "t2", "d2z1", "d2z3"));

} // namespace
} // namespace troupe::models
