#include "config/base/host_port.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(HostPort, ThePortFollowsTheLastColon) {
  EXPECT_EQ(parse_host_port("9400")->port, 9400);
  EXPECT_EQ(parse_host_port("9400")->host, "");
  EXPECT_EQ(parse_host_port("10.0.0.1:80")->host, "10.0.0.1");
  EXPECT_EQ(parse_host_port("[::1]:80")->host, "::1");
  EXPECT_EQ(parse_host_port("[::1]:80")->port, 80);
}

TEST(HostPort, AnythingElseIsRefused) {
  for (const char* text :
       {"", ":80", "host:", "host", "0", "65536", "80x", "host:80 ", "-1"})
    EXPECT_FALSE(parse_host_port(text)) << text;
}

} // namespace
} // namespace troupe
