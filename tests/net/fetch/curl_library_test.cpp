// libcurl where it is not.
#include "net/fetch/fetch.hpp"

#include <gmock/gmock.h>

namespace troupe::net {
namespace {

using ::testing::HasSubstr;

TEST(CurlLibrary, AMachineWithoutItSaysSo) {
  const auto library = CurlLibrary::open({"libnowhere.so.4"});
  EXPECT_THAT(library.why_not, HasSubstr("libnowhere.so.4"));
  const auto reply
    = fetch(library, {.url = "http://host/a"}, [](std::string_view) {});
  EXPECT_FALSE(reply.fetched());
  EXPECT_THAT(reply.error, HasSubstr("libcurl: libnowhere"));
}

TEST(CurlLibrary, AnotherLibraryIsNotTakenForIt) {
  EXPECT_THAT(CurlLibrary::open({"libc.so.6"}).why_not,
              HasSubstr("it has no curl_global_init"));
}

} // namespace
} // namespace troupe::net
