// Addresses of this host, which every machine has.
#include "config/base/error.hpp"
#include "config/base/own_address.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(OwnAddress, TowardsThisHostIsLoopback) {
  EXPECT_EQ(address_towards("127.0.0.1"), "127.0.0.1");
  EXPECT_THROW(address_towards("no-such-host.invalid"), FailureError);
}

TEST(OwnAddress, ThisHostIsNoOtherAndAnUnknownOneNotKnownToBe) {
  for (const auto* host :
       {"127.0.0.1", "127.3.2.1", "localhost", "::1", "no-such-host.invalid"})
    EXPECT_FALSE(is_other_host(host)) << host;
}

TEST(OwnAddress, LoopbackIsOfBothFamilies) {
  EXPECT_TRUE(is_loopback("127.0.0.9"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("192.0.2.1"));
  EXPECT_FALSE(is_loopback("localhost"));
}

} // namespace
} // namespace troupe
