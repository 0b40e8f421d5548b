// Small work of engines on pretended GPUs (docs/gpu_tests.md) under seeds 1 to
// TROUPE_ORDERS (default 3): a seed draws the order in which streams run,
// within what streams, events and collectives allow. Where no wait is missing,
// every seed gives the bits of the first, and no access is illegal.
#include "models/engine/engine.hpp"
#include "models/generate/generate_options.hpp"
#include "models/gpu/gpu_memory.hpp"
#include "models/kernels/backend.hpp"
#include "models/parallel/local_model.hpp"
#include "models/parallel/parameters.hpp"
#include "models/parallel/weight_exchange.hpp"
#include "models/parallel/weight_move.hpp"
#include "net/collectives/nccl_call.hpp"
#include "net/data_plane/data_plane.hpp"
#include "plans/weights/move_plan.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include "tests/support/models/pretended_gpus.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace troupe::models {
namespace {

using troupe::testing::first_samples;
using troupe::testing::ParallelReplica;
using troupe::testing::pretended_gpus;
using troupe::testing::random_prompts;
using troupe::testing::random_sequences;
using troupe::testing::Standin;
using troupe::testing::TempFolder;
using troupe::testing::wide_shape;

std::uint64_t num_seeds() {
  const char* asked = std::getenv("TROUPE_ORDERS");
  return asked == nullptr ? 3 : std::strtoull(asked, nullptr, 10);
}

std::atomic<std::size_t> gathered_bytes = 0;

/// Returns NCCL, which counts the bytes that ranks send in gathers.
const net::NcclLibrary& counted_nccl() {
  static const net::NcclLibrary counted = [] {
    net::NcclLibrary library = net::NcclLibrary::machine();
    library.all_gather
      = [](const void* from, void* to, std::size_t count, int type,
           net::NcclCommunicator communicator, net::CudaStream stream) {
          gathered_bytes
            += count
               * size_bytes(type == net::nccl_type(DType::bf16) ? DType::bf16
                                                                : DType::f32);
          return net::NcclLibrary::machine().all_gather(from, to, count, type,
                                                        communicator, stream);
        };
    return library;
  }();
  return counted;
}

/// The numbers that a case computed.
class Bits {
public:
  template <class T>
  void add(std::span<T> numbers) {
    const auto bytes = std::as_bytes(numbers);
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void add(const net::Rows& rows) {
    add(rows.at("sequence_ids").as<std::int32_t>());
    add(rows.at("logprobs").as<float>());
  }
  void add(const ParallelReplica& replica) {
    for (const auto& [name, values] : replica.plane(Plane::weight))
      add(std::span(values));
  }
  bool operator==(const Bits&) const = default;
  bool empty() const {
    return bytes_.empty();
  }

private:
  std::string bytes_;
};

class Orders : public ::testing::Test {
protected:
  void SetUp() override {
    if (standin_.begin == nullptr)
      GTEST_SKIP() << "no GPU: not under tests/gpu/standin.sh";
    troupe::testing::write_random_model(folder_ / "model", wide_shape(), 1);
    troupe::testing::write_random_model(folder_ / "experts",
                                        troupe::testing::experts_shape(), 1);
  }
  Engine::Spec spec() const {
    return troupe::testing::trained_actor(folder_ / "model");
  }
  /// Returns the role of a model whose experts the device dispatches.
  Engine::Spec experts() const {
    Engine::Spec spec = troupe::testing::trained_actor(folder_ / "experts");
    spec.dtype = DType::bf16;
    return spec;
  }
  ParallelReplica replica(const char* strategy) const {
    return ParallelReplica(spec(), strategy, pretended_gpus());
  }
  static void train(ParallelReplica& replica) {
    const net::Rows rows = random_sequences(6, 75, 14, 2);
    TrainSpec train;
    train.fn = "sft_loss";
    train.mini_batches = {first_samples(4), first_samples(6)};
    train.micro_batch_tokens = 30;
    replica.train(train, rows);
  }
  /// Responses end at several steps, and others take their slots.
  static net::Rows generate(ParallelReplica& replica) {
    return replica.generate(random_prompts(75),
                            {.max_new_tokens = 6,
                             .seed = 5,
                             .max_sequences = 4,
                             .stop_ids = {3, 9, 14, 21, 30, 42, 55, 60}});
  }

  void standin_begin(std::uint64_t seed) const {
    standin_.begin(seed);
  }
  /// Returns the launches with this in their name since the seed was given.
  long launches(const char* part) const {
    return standin_.launches(part);
  }

  using Case = std::function<void(Bits&)>;
  void expect_same_bits(const Case& run) const {
    Bits first;
    for (std::uint64_t seed = 1; seed <= num_seeds(); ++seed) {
      standin_.begin(seed);
      Bits bits;
      run(bits);
      ASSERT_FALSE(bits.empty());
      ASSERT_EQ(standin_.faults(), 0)
        << "seed " << seed << ": " << standin_.fault();
      if (seed == 1)
        first = std::move(bits);
      else
        ASSERT_TRUE(bits == first) << "other bits with seed " << seed;
    }
  }
  void expect_same_scores(const char* strategy) const {
    ParallelReplica scoring = replica(strategy);
    expect_same_bits([&](Bits& bits) {
      const net::Rows rows = random_sequences(6, 75, 14, 2);
      const net::Rows found
        = scoring.infer("logprobs", rows, {.micro_batch_tokens = 30});
      bits.add(found.at("logprobs").as<float>());
    });
  }
  void expect_same_training(const char* strategy,
                            DType dtype = DType::f32) const {
    expect_same_bits([&](Bits& bits) {
      Engine::Spec trains = spec();
      trains.dtype = dtype;
      ParallelReplica trained(trains, strategy, pretended_gpus());
      train(trained);
      bits.add(trained);
    });
  }

private:
  const Standin standin_ = Standin::of_process();
  TempFolder folder_;
};

TEST_F(Orders, OfStreamsDoNotChangeTraining_I8) {
  expect_same_training("d1");
}
TEST_F(Orders, OfStreamsDoNotChangeSumsOfGradients_I8) {
  expect_same_training("d2");
}
TEST_F(Orders, OfStreamsDoNotChangeSharedOptimizers_I8) {
  expect_same_training("d2z1");
}
TEST_F(Orders, OfStreamsDoNotChangeSharedOptimizersOfRoundedWeights_I8) {
  expect_same_training("d2z1", DType::bf16);
}
TEST_F(Orders, OfStreamsDoNotChangeSharedParameters_I8) {
  expect_same_training("d2z3");
}
TEST_F(Orders, OfStreamsDoNotChangeSharedParametersThatAreRounded_I8) {
  expect_same_training("d2z3", DType::bf16);
}
TEST_F(Orders, OfStreamsDoNotChangeTensorPeers_I8) {
  expect_same_training("t2");
}
TEST_F(Orders, OfStreamsDoNotChangeTensorPeersThatSplitTokens_I8) {
  expect_same_training("t2s");
}
TEST_F(Orders, OfStreamsDoNotChangeGathersOfKeys_I8) {
  expect_same_training("c2");
  expect_same_training("c2", DType::bf16);
}
TEST_F(Orders, OfStreamsDoNotChangeStages_I8) {
  expect_same_training("p2");
}
TEST_F(Orders, OfStreamsDoNotChangeStagesInBf16_I8) {
  expect_same_training("p2", DType::bf16);
}
TEST_F(Orders, OfStreamsDoNotChangeScoresOfTensorPeers_I8) {
  expect_same_scores("t2");
}
TEST_F(Orders, OfStreamsDoNotChangeScoresOfStages_I8) {
  expect_same_scores("p2");
}

// Of the numbers that a step's gathers bring, products read nearly all.
TEST_F(Orders, GathersOfRoundedWeightsSendHalfTheBytes) {
  const auto gathered = [&](const char* strategy, DType dtype) {
    standin_begin(1);
    Engine::Spec trains = spec();
    trains.dtype = dtype;
    ParallelReplica trained(trains, strategy, pretended_gpus(counted_nccl()));
    gathered_bytes = 0;
    train(trained);
    return static_cast<double>(gathered_bytes);
  };
  const double whole = gathered("d2z3", DType::f32);
  ASSERT_GT(whole, 0);
  EXPECT_NEAR(gathered("d2z3", DType::bf16) / whole, 0.5, 0.05);
  // z1 gathers after two steps: rounded weights, then the masters
  EXPECT_NEAR(gathered("d2z1", DType::bf16) / gathered("d2z1", DType::f32),
              0.75, 0.05);
}

TEST_F(Orders, OfStreamsDoNotChangeGeneration_I8) {
  ParallelReplica generating = replica("d1");
  expect_same_bits([&](Bits& bits) { bits.add(generate(generating)); });
}
TEST_F(Orders, OfStreamsDoNotChangeGenerationByTensorPeers_I8) {
  ParallelReplica generating = replica("t2");
  expect_same_bits([&](Bits& bits) { bits.add(generate(generating)); });
}
TEST_F(Orders, OfStreamsDoNotChangeGenerationByStages_I8) {
  ParallelReplica generating = replica("p2");
  expect_same_bits([&](Bits& bits) { bits.add(generate(generating)); });
}

TEST_F(Orders, OfStreamsDoNotChangeGenerationOfTensorPeersInGraphs_I8) {
  ParallelReplica generating = replica("t2");
  expect_same_bits([&](Bits& bits) {
    bits.add(generate(generating));
    EXPECT_GT(launches("cudaGraphLaunch"), 0);
    EXPECT_GT(launches("ncclAllReduce in a graph"), 0);
    EXPECT_GT(launches("ncclAllGather in a graph"), 0);
  });
}

TEST_F(Orders, OfStreamsDoNotChangeExperts_I8) {
  for (const char* strategy : {"d1", "d2z1", "t2"})
    expect_same_bits([&](Bits& bits) {
      ParallelReplica trained(experts(), strategy, pretended_gpus());
      train(trained);
      bits.add(trained);
      EXPECT_GT(launches("SortExperts"), 0) << strategy;
      EXPECT_GT(launches("ExpertUnitBackward"), 0) << strategy;
    });
}
TEST_F(Orders, OfStreamsDoNotChangeGenerationWithExpertsInGraphs_I8) {
  ParallelReplica generating(experts(), "d1", pretended_gpus());
  expect_same_bits([&](Bits& bits) {
    bits.add(generate(generating));
    EXPECT_GT(launches("cudaGraphLaunch"), 0);
    EXPECT_GT(launches("SortExperts"), 0);
  });
}

plans::Layout layout_of(const ParallelReplica& replica) {
  std::vector<Rank> devices;
  for (std::uint32_t i = 0; i < replica.size(); ++i)
    devices.emplace_back(i);
  return plans::make_layout(parameters(wide_shape()), replica.strategy(),
                            devices, DType::f32);
}

/// Moves the weights as actors/worker/weight_moves.cpp does.
void move(ParallelReplica& from, ParallelReplica& to) {
  net::DataPlane data_plane({.self = WorkerId{0}, .token = "test"});
  const auto all
    = plans::move_plan(layout_of(from), layout_of(to), {.devices_per_node = 2});
  to.run([&](Engine& engine, RunContext&, std::uint32_t) {
    const Rank self{index_of(to.strategy(), engine.part().where)};
    WeightMove move(
      plans::transfers_to(all, self),
      [&](Rank source) {
        const auto& block
          = from.engine(source.value).parameters().published(Plane::weight);
        return PlaneSource{.worker = WorkerId{0},
                           .bytes = {block.data(), block.size_bytes()},
                           .memory = block.memory()};
      },
      data_plane);
    engine.expect_weights();
    const auto target = engine.parameters().overwrite(Plane::weight);
    move.run(target.bytes());
    target.put_back();
    engine.weights_changed();
  });
}

constexpr std::array all_planes{Plane::weight, Plane::m, Plane::v};

// Copies that bring planes and take them are beside kernels of both replicas.
TEST_F(Orders, OfStreamsDoNotChangePlanesThatComeAndGo_I8) {
  ParallelReplica generating = replica("d1");
  expect_same_bits([&](Bits& bits) {
    ParallelReplica trained = replica("d2z1");
    for (int step = 0; step < 2; ++step) {
      train(trained);
      trained.run([](Engine& engine, RunContext&, std::uint32_t) {
        engine.offload(all_planes);
      });
      bits.add(generate(generating));
      bits.add(trained);
      trained.run([](Engine& engine, RunContext&, std::uint32_t) {
        engine.reload(all_planes);
      });
    }
    train(trained);
    bits.add(trained);
  });
}

TEST_F(Orders, OfStreamsDoNotChangeMovesAndWhatIsGeneratedThen_I8) {
  ParallelReplica generating = replica("p2");
  expect_same_bits([&](Bits& bits) {
    ParallelReplica trained = replica("t2");
    train(trained);
    move(trained, generating);
    bits.add(generating);
    bits.add(generate(generating));
  });
}

/// Moves the weights between devices that count as hosts of their own, as
/// actors/worker/move_exchange.cpp does.
void move_between_hosts(ParallelReplica& from, ParallelReplica& to) {
  net::GroupRegistry registry;
  const auto all
    = plans::move_plan(layout_of(from), layout_of(to), {.nodes = 2});
  const auto [within, between] = plans::by_host(all, {.nodes = 2});
  const auto members = plans::ends_of(between);
  const auto published = [&](Rank device) {
    return std::as_bytes(std::as_const(from.engine(device.value).parameters())
                           .plane(Plane::weight));
  };
  // A member that leaves ends the group, so none does before all are done.
  std::vector<std::shared_ptr<net::Collectives>> groups(members.size());
  to.run([&](Engine& engine, RunContext&, std::uint32_t) {
    const Rank self{index_of(to.strategy(), engine.part().where)};
    net::GroupSpec spec;
    spec.name = "move";
    spec.index = self.value;
    spec.members.resize(members.size());
    const auto& group = groups.at(self.value) = pretended_gpus().join(
      net::make_host_collectives(spec, registry), self.value);
    engine.expect_weights();
    const auto target
      = std::as_writable_bytes(engine.parameters().plane(Plane::weight));
    const WeightExchange exchange(
      plans::move_rounds(between, members, self, /*staging_bytes=*/5000));
    exchange.run(*group, gpu_memory(), {published(self), target});
    const auto own = plans::transfers_to(within, self);
    const std::vector<ByteRuns> copies(own.begin(), own.end());
    gpu_memory().copy(published(self).data(), target.data(), copies);
    engine.weights_changed();
  });
}

TEST_F(Orders, OfStreamsDoNotChangeMovesBetweenHosts_I1_I8) {
  ParallelReplica generating = replica("p2");
  expect_same_bits([&](Bits& bits) {
    ParallelReplica trained = replica("t2");
    train(trained);
    move_between_hosts(trained, generating);
    EXPECT_EQ(generating.plane(Plane::weight), trained.plane(Plane::weight));
    bits.add(generating);
  });
}

} // namespace
} // namespace troupe::models
