// Ways of weights to servers, by settings and by where a server is.
#include "actors/worker/weight_route.hpp"
#include "config/base/error.hpp"

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using ::testing::HasSubstr;

Settings settings_of(const std::string& engine, const std::string& over) {
  Settings settings;
  settings.rollout.engine.kind = engine;
  settings.rollout.engine.weights_over = over;
  return settings;
}

const ServerPlace this_host{.name = "http://127.0.0.1:8000",
                            .own_address = "127.0.0.1"};
const ServerPlace other_host{
  .name = "http://node9:8000", .is_other = true, .own_address = "192.0.2.7"};

TEST(WeightRoute, IsMemoryUnlessTcpIsSet) {
  EXPECT_FALSE(weight_offer(settings_of("vllm", "memory"), this_host));
  const auto offer = weight_offer(settings_of("vllm", "tcp"), this_host);
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->where.address, "127.0.0.1");
  EXPECT_EQ(offer->where.first, 0);
  EXPECT_EQ(offer->wire, net::OfferWire::clear);
}

TEST(WeightRoute, OffLoopbackIsEncryptedUnlessTlsIsOff) {
  auto settings = settings_of("vllm", "tcp");
  settings.cluster.ports = "7100-7200";
  const auto offer = weight_offer(settings, other_host);
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->where.address, "192.0.2.7");
  EXPECT_EQ(offer->where.first, 7100);
  EXPECT_EQ(offer->where.last, 7200);
  EXPECT_EQ(offer->wire, net::OfferWire::encrypted);
  settings.cluster.tls = "off";
  EXPECT_EQ(weight_offer(settings, other_host)->wire, net::OfferWire::clear);
}

std::string refusal(const std::string& engine) {
  try {
    weight_offer(settings_of(engine, "memory"), other_host);
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::bad_input);
    return error.what();
  }
  return "";
}

TEST(WeightRoute, MemoryOfAnotherHostIsRefusedWithWhatToSet) {
  EXPECT_THAT(refusal("vllm"), HasSubstr("http://node9:8000 is on another"));
  EXPECT_THAT(refusal("vllm"), HasSubstr("try rollout.weights_over=tcp"));
  EXPECT_THAT(refusal("sglang"), Not(HasSubstr("weights_over")));
}

TEST(WeightRoute, ByNcclNothingIsOfferedAndAnyHostIsReached) {
  const auto settings = settings_of("vllm", "nccl");
  EXPECT_FALSE(weight_offer(settings, this_host));
  EXPECT_FALSE(weight_offer(settings, other_host));
  const auto broadcast = weight_broadcast(settings, 3);
  ASSERT_TRUE(broadcast);
  EXPECT_EQ(broadcast->gpu, 3);
  EXPECT_FALSE(weight_broadcast(settings_of("vllm", "tcp"), 3));
}

TEST(WeightRoute, AServerOfThisHostIsReachedByLoopback) {
  const auto place
    = place_of_server(settings_of("vllm", "tcp"), "a server", "127.0.0.1");
  EXPECT_FALSE(place.is_other);
  EXPECT_EQ(place.own_address, "127.0.0.1");
}

} // namespace
} // namespace troupe::actors
