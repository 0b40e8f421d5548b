// Ranks that gather rounded weights compute the bits of ranks that gather
// nothing, and send two bytes of each number that products read.
#include "config/model/product_operands.hpp"
#include "models/generate/generate_options.hpp"
#include "models/gpu/aten_backend.hpp"
#include "models/parallel/local_model.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include "tests/support/net/host_streams.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

namespace troupe::models {
namespace {

using troupe::testing::first_samples;
using troupe::testing::HostStreams;
using troupe::testing::ParallelReplica;
using troupe::testing::random_prompts;
using troupe::testing::random_sequences;
using troupe::testing::ReplicaDevices;
using troupe::testing::StreamPace;
using troupe::testing::TempFolder;
using troupe::testing::wide_shape;

enum class Calls { waited, early, late };

Backend& backend_of_bf16() {
  static AtenBackend backend(
    at::kCPU, {.bf16_storage = DType::bf16, .own_kernels = true});
  return backend;
}

/// Counts what a member sends in gathers of parameters.
class GatheredBytes final : public HostStreams {
public:
  GatheredBytes(std::shared_ptr<net::Collectives> host, Calls calls,
                std::atomic<std::size_t>& bytes)
    : HostStreams(
      std::move(host),
      {.pace = calls == Calls::late ? StreamPace::late : StreamPace::early}),
      calls_(calls),
      bytes_(bytes) {}

  void all_gather(const void* mine, void* all, std::size_t count, DType dtype,
                  const char* name) override {
    if (std::string(name) == "parameters")
      bytes_ += count * size_bytes(dtype);
    HostStreams::all_gather(mine, all, count, dtype, name);
  }
  net::StreamCollectives* on_streams(const void* data) override {
    return calls_ == Calls::waited ? nullptr : HostStreams::on_streams(data);
  }
  using HostStreams::all_gather;

private:
  const Calls calls_;
  std::atomic<std::size_t>& bytes_;
};

class RoundedGather : public ::testing::TestWithParam<Calls> {
protected:
  RoundedGather() {
    troupe::testing::write_random_model(folder_ / "model", wide_shape(), 1);
  }
  ParallelReplica replica(const char* strategy, DType dtype = DType::bf16) {
    auto spec = troupe::testing::trained_actor(folder_ / "model");
    spec.dtype = dtype;
    spec.optimizer.clip = 0; // parts of a norm are added in another order
    return {
      spec,
      strategy,
      {.backend = [](std::uint32_t) -> Backend& { return backend_of_bf16(); },
       .join =
         [this](std::shared_ptr<net::Collectives> host, std::uint32_t) {
           return std::make_shared<GatheredBytes>(std::move(host), GetParam(),
                                                  bytes_);
         }}};
  }
  /// Trains for three steps, of a micro-batch each: z3 adds up no others. In
  /// the first one a rank has no sample, and no reason to round its weights.
  static void train(ParallelReplica& replica) {
    TrainSpec spec;
    spec.fn = "sft_loss";
    spec.mini_batches = {first_samples(1), first_samples(6), first_samples(2)};
    spec.micro_batches = 1;
    replica.train(spec, rows());
  }
  static net::Rows rows() {
    return random_sequences(6, 75, 14, 2);
  }
  static net::Rows generate(ParallelReplica& replica) {
    return replica.generate(random_prompts(75), {.max_new_tokens = 5});
  }
  static void expect_same_logprobs(const net::Rows& got,
                                   const net::Rows& want) {
    EXPECT_TRUE(std::ranges::equal(got.at("logprobs").as<float>(),
                                   want.at("logprobs").as<float>()));
  }
  /// Returns the bytes that all members of dp send while `work` runs.
  template <class Work>
  std::size_t sent(const Work& work) {
    bytes_ = 0;
    work();
    return bytes_;
  }

  TempFolder folder_;
  std::atomic<std::size_t> bytes_ = 0;
};

TEST_P(RoundedGather, HasTheBitsOfWeightsThatAreNotCut_I8) {
  ParallelReplica whole = replica("d2");
  train(whole);
  for (const char* strategy : {"d2z1", "d2z3"}) {
    ParallelReplica cut = replica(strategy);
    train(cut);
    EXPECT_TRUE(cut.plane(Plane::weight) == whole.plane(Plane::weight))
      << strategy;
    expect_same_logprobs(cut.infer("logprobs", rows()),
                         whole.infer("logprobs", rows()));
    expect_same_logprobs(generate(cut), generate(whole));
  }
}

/// Numbers that each member sends in a gather of the whole model, of those that
/// products read and of the others, at most.
struct SentNumbers {
  std::size_t all = 0;
  std::size_t in_fp32 = 0;
};

SentNumbers numbers_of(const char* strategy) {
  const LocalModel part(wide_shape(), parse_strategy(strategy), {});
  SentNumbers sent;
  for (const plans::GatherBuffer& unit : part.windows.units) {
    sent.all += static_cast<std::size_t>(unit.run);
    for (std::size_t i = unit.first_box; i < unit.end_box; ++i)
      if (!read_by_products(part.local_parameters[i]))
        sent.in_fp32
          += static_cast<std::size_t>(part.boxes[i].box.num_elements());
  }
  return sent;
}

TEST_P(RoundedGather, SendsTwoBytesOfANumberThatProductsRead) {
  const SentNumbers numbers = numbers_of("d2z3");
  ASSERT_LT(numbers.in_fp32, numbers.all / 10);
  ParallelReplica in_fp32 = replica("d2z3", DType::f32);
  ParallelReplica rounded = replica("d2z3");
  const auto infer = [&](ParallelReplica& of) {
    return sent([&] { of.infer("logprobs", rows()); });
  };
  const std::size_t passes = infer(in_fp32) / (2 * 4 * numbers.all);
  ASSERT_GT(passes, 0U);
  EXPECT_EQ(infer(in_fp32), passes * 2 * 4 * numbers.all);
  const std::size_t products = passes * 2 * 2 * numbers.all;
  const std::size_t found = infer(rounded);
  EXPECT_GT(found, products);
  EXPECT_LE(found, products + passes * 2 * 4 * numbers.in_fp32);
  EXPECT_LT(sent([&] { generate(rounded); }),
            sent([&] { generate(in_fp32); }) * 6 / 10);
}

TEST_P(RoundedGather, OfZ1BringsMastersOnceACall) {
  const SentNumbers numbers = numbers_of("d2z1");
  ParallelReplica in_fp32 = replica("d2z1", DType::f32);
  ParallelReplica rounded = replica("d2z1");
  const std::size_t masters = 2 * 4 * numbers.all;
  EXPECT_EQ(sent([&] { train(in_fp32); }), 3 * masters);
  const std::size_t found = sent([&] { train(rounded); });
  EXPECT_GT(found, 2 * masters);
  EXPECT_LE(found, 2 * masters + 2 * 2 * 4 * numbers.in_fp32);
}

INSTANTIATE_TEST_SUITE_P(Ways, RoundedGather,
                         ::testing::Values(Calls::waited, Calls::early,
                                           Calls::late),
                         [](const auto& one) {
                           return one.param == Calls::waited  ? "Waited"
                                  : one.param == Calls::early ? "Early"
                                                              : "Late";
                         });

} // namespace
} // namespace troupe::models
