// A server whose updates go wrong, by tests/support/vllm_stand_in.py, which
// leaves an update open where vLLM does.
#include "config/base/error.hpp"
#include "models/engine/engine.hpp"
#include "models/servers/make_server.hpp"

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/stand_in_servers.hpp"
#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace troupe::models {
namespace {

using ::testing::HasSubstr;
using troupe::testing::vllm_stand_in;

class GenerationServerTest : public ::testing::Test {
protected:
  GenerationServerTest() {
    testing::write_random_model(folder / "model", testing::small_shape(), 1);
    Engine engine(testing::actor_of(folder / "model"));
    engine.load_weights();
    weights.take(engine.parameters());
  }
  /// Returns a server that somebody else started, with this fault.
  std::unique_ptr<GenerationServer> others(const std::string& fault) {
    return others(vllm_stand_in(folder.path(), fault));
  }
  std::unique_ptr<GenerationServer> others(ServerSpec spec) {
    owner = make_server(spec);
    owner->start(context);
    spec.program.argv.clear();
    return make_server(std::move(spec));
  }
  std::string failure_of_update(GenerationServer& server,
                                const std::string& version) {
    try {
      server.update(weights, nullptr, version, context);
    } catch (const FailureError& error) {
      return error.what();
    }
    return "";
  }

  const support::TempFolder folder;
  RunContext context;
  SentWeights weights;
  std::unique_ptr<GenerationServer> owner;
  const std::vector<std::int32_t> ids{4, 5, 6};
};

TEST_F(GenerationServerTest, AFailedUpdateLeavesAServerThatGenerates) {
  for (const auto* fault : {"drop_tensor", "refuse_update"}) {
    const auto server = others(fault);
    server->start(context);
    const auto before = server->score(ids, context);
    EXPECT_NE(failure_of_update(*server, "1"), "") << fault;
    // one that is paused would not answer
    EXPECT_EQ(server->score(ids, context), before) << fault;
    EXPECT_EQ(failure_of_update(*server, "2"), "") << fault;
  }
}

TEST_F(GenerationServerTest, AnUpdateThatAnEarlierRunLeftOpenIsClosed) {
  const auto server = others("left_open");
  server->start(context);
  EXPECT_EQ(failure_of_update(*server, "1"), "");
  EXPECT_EQ(server->score(ids, context).size(), ids.size());
}

/// Returns a stand-in of two ranks that reads its weights over TCP.
ServerSpec reads_over_tcp(const std::filesystem::path& folder,
                          const std::string& fault,
                          net::OfferWire wire = net::OfferWire::clear) {
  auto spec = vllm_stand_in(folder, fault);
  spec.program.argv.insert(spec.program.argv.end(),
                           {"--tensor-parallel-size", "2"});
  spec.offer = net::ByteOfferSpec{.who = {}, .wire = wire};
  return spec;
}

TEST_F(GenerationServerTest, WeightsOverTcpAreThoseOfMemory) {
  const auto by_memory = others("");
  by_memory->start(context);
  EXPECT_EQ(failure_of_update(*by_memory, "1"), "");
  const auto expected = by_memory->score(ids, context);
  for (const auto wire : {net::OfferWire::clear, net::OfferWire::encrypted}) {
    const auto server = others(reads_over_tcp(folder.path(), "", wire));
    server->start(context);
    EXPECT_EQ(failure_of_update(*server, "1"), "");
    EXPECT_EQ(server->score(ids, context), expected);
  }
}

TEST_F(GenerationServerTest, AFailedReadingIsNamedAndLeavesTheOldWeights) {
  const std::map<std::string, std::string> named{
    {"wrong_token", "ended after 0 of"},
    {"stop_reading", "told to stop reading"},
    {"wrong_sum", "its checksum differs"}};
  for (const auto& [fault, words] : named) {
    const auto server = others(reads_over_tcp(folder.path(), fault));
    server->start(context);
    const auto before = server->score(ids, context);
    EXPECT_THAT(failure_of_update(*server, "1"), HasSubstr(words)) << fault;
    EXPECT_EQ(server->score(ids, context), before) << fault;
    EXPECT_EQ(failure_of_update(*server, "2"), "") << fault;
  }
}

TEST_F(GenerationServerTest, AServerThatDiesWhileItReadsIsLost) {
  const auto server = others(reads_over_tcp(folder.path(), "die_reading"));
  server->start(context);
  try {
    server->update(weights, nullptr, "1", context);
    FAIL() << "nothing was thrown";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::peer_lost);
    EXPECT_EQ(error.failure().who, server->name());
  }
}

TEST_F(GenerationServerTest, AServerWhoseEngineIsDeadIsLost) {
  const auto server = others("sick_at:1");
  server->start(context);
  try {
    server->score(ids, context);
    FAIL() << "nothing was thrown";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::peer_lost);
    EXPECT_THAT(error.failure().cause, HasSubstr("503"));
  }
}

} // namespace
} // namespace troupe::models
