// Generation by a server that gets its weights by NCCL, as vLLM's own backend
// does (tests/support/vllm_stand_in.py): a stand-in for NCCL joins the ranks of
// both processes (tests/support/nccl). No GPU is needed or used.
#include "models/servers/make_server.hpp"

#include "tests/support/models/served_support.hpp"
#include <gmock/gmock.h>

#include <filesystem>

namespace troupe::models {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using troupe::testing::FakeNccl;

class ServedBroadcastTest : public troupe::testing::ServedTest {
protected:
  ServedBroadcastTest() {
    change_weights();
  }
  ServedSpec spec(const std::string& fault, int num_ranks = 1) const {
    return {.server = testing::nccl_stand_in(folder.path(), fault, num_ranks)};
  }
  /// Returns how many NCCL groups have been made since the test began.
  std::uint64_t groups() const {
    return FakeNccl::instance().groups() - groups_before_;
  }

private:
  const std::uint64_t groups_before_ = FakeNccl::instance().groups();
};

TEST_F(ServedBroadcastTest, TokensAreOfTheWeightsOfEachVersion) {
  for (const int num_ranks : {1, 2}) {
    const auto groups_before = groups();
    ServedGeneration served(spec("", num_ranks));
    EXPECT_LT(gap_of(generate(served, "1")), 1e-4);
    change_weights();
    EXPECT_LT(gap_of(generate(served, "2")), 1e-4);
    const auto report = served.take_report();
    EXPECT_LT(report.gap.value(), 1e-4);
    EXPECT_EQ(report.updated_bytes,
              2 * weight_bytes(engine->shape(), DType::f32));
    EXPECT_EQ(report.restarts, 0U);
    EXPECT_EQ(groups() - groups_before, 1U) << "one in a server's life";
  }
}

TEST_F(ServedBroadcastTest, AServerThatDiesInABroadcastIsStartedAgain) {
  for (const int num_ranks : {1, 2}) {
    std::filesystem::remove(folder / "count");
    const auto groups_before = groups();
    ServedGeneration served(spec("die_reading:2", num_ranks));
    EXPECT_LT(gap_of(generate(served, "1")), 1e-4);
    EXPECT_EQ(served.take_report().restarts, 1U);
    EXPECT_EQ(groups() - groups_before, 2U) << "one in each life";
  }
}

TEST_F(ServedBroadcastTest, AnotherVersionOfNcclIsNamed) {
  auto other = spec("", 2);
  other.server.program.environment.emplace_back("TROUPE_FAKE_NCCL_VERSION",
                                                "23007");
  const auto failure = failure_of(other);
  EXPECT_THAT(failure, HasSubstr("it refused /init_weight_transfer_engine"));
  EXPECT_THAT(failure, HasSubstr("invalid usage"));
  EXPECT_THAT(failure, HasSubstr("NCCL here is 2.28.9"));
}

TEST_F(ServedBroadcastTest, AMistakeIsFoundBeforeTheFirstToken) {
  // the server keeps an old tensor without a word
  EXPECT_THAT(failure_of(spec("drop_tensor")),
              HasSubstr("not those of the weights"));
  EXPECT_THAT(failure_of(spec("old_weights")),
              HasSubstr("not those of the weights"));
  const auto refused = failure_of(spec("refuse_update"));
  EXPECT_THAT(refused, HasSubstr("told to refuse"));
  EXPECT_THAT(refused, HasSubstr("it stays paused"));
}

TEST_F(ServedBroadcastTest, AServerOfAnotherBackendIsRefused) {
  auto other = spec("");
  other.server.program.argv.insert(
    other.server.program.argv.end(),
    {"--weight-transfer-config", R"({"backend":"troupe_shm"})"});
  EXPECT_THAT(failure_of(other), HasSubstr("another backend than nccl"));
}

TEST_F(ServedBroadcastTest, AHostWithoutNcclIsToldWhatIsMissing) {
  auto absent = spec("");
  absent.server.broadcast->library = &FakeNccl::absent();
  EXPECT_THAT(failure_of(absent), HasSubstr("NCCL cannot be used: libnone.so"));
}

TEST_F(ServedBroadcastTest, AFailedUpdateIsFollowedByANewGroup) {
  const auto server = make_server(spec("refuse_update").server);
  server->start(context);
  SentWeights weights;
  weights.take(engine->parameters());
  EXPECT_THROW(server->update(weights, nullptr, "1", context), FailureError);
  EXPECT_NO_THROW(server->update(weights, nullptr, "2", context));
  EXPECT_EQ(groups(), 2U);
}

} // namespace
} // namespace troupe::models
