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

#include <memory>

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
    auto spec = vllm_stand_in(folder.path(), fault);
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
