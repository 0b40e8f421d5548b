// libcurl where it is not, and the hash of what it fetched.
#include "config/base/error.hpp"
#include "net/fetch/fetch.hpp"

#include "tests/support/temp_folder.hpp"
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

TEST(Sha256, IsThatOfTheStandardsExample) {
  const support::TempFolder folder;
  support::write_text(folder / "abc", "abc");
  EXPECT_EQ(sha256_of((folder / "abc").string()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_THROW(sha256_of((folder / "none").string()), FailureError);
}

} // namespace
} // namespace troupe::net
