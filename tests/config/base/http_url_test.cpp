// Addresses of HTTP servers, plain and over TLS.
#include "config/base/http_url.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(HttpUrl, IsSplitIntoItsParts) {
  const auto url = parse_http_url("http://host:9000/score?a=1").value();
  EXPECT_EQ(url.host, "host");
  EXPECT_EQ(url.port, "9000");
  EXPECT_EQ(url.target, "/score?a=1");
  EXPECT_FALSE(url.secure);
  EXPECT_EQ(parse_http_url("http://host").value().port, "80");
  EXPECT_EQ(parse_http_url("http://[::1]:8/").value().host, "::1");
}

TEST(HttpUrl, HttpsIsSecureOnAPortOfItsOwn) {
  const auto url = parse_http_url("https://host/score").value();
  EXPECT_TRUE(url.secure);
  EXPECT_EQ(url.host, "host");
  EXPECT_EQ(url.port, "443");
  EXPECT_EQ(parse_http_url("https://host:9443").value().port, "9443");
}

TEST(HttpUrl, AnythingElseIsNone) {
  for (const char* text : {"", "host", "ftp://host", "https://", "http://h:0",
                           "https://h:x", "http://a b"})
    EXPECT_FALSE(parse_http_url(text)) << text;
}

} // namespace
} // namespace troupe
