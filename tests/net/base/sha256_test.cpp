// Digests of bytes and of files: the example of FIPS 180-4.
#include "config/base/error.hpp"
#include "net/base/sha256.hpp"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.hpp"

#include <string_view>

namespace troupe::net {
namespace {

constexpr const char* digest_of_abc
  = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256, IsThatOfTheStandardsExample) {
  const std::string_view text = "abc";
  EXPECT_EQ(sha256_hex(std::as_bytes(std::span(text))), digest_of_abc);
  const support::TempFolder folder;
  support::write_text(folder / "abc", "abc");
  EXPECT_EQ(sha256_of_file(folder / "abc"), digest_of_abc);
}

TEST(Sha256, AFileOfSeveralPartsHasTheDigestOfItsBytes) {
  const std::string large(3'000'000, 'a');
  const support::TempFolder folder;
  support::write_text(folder / "large", large);
  EXPECT_EQ(sha256_of_file(folder / "large"),
            sha256_hex(std::as_bytes(std::span(large))));
}

TEST(Sha256, AFileThatIsNotThereIsNamed) {
  const support::TempFolder folder;
  try {
    sha256_of_file(folder / "none");
    FAIL();
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::io);
    EXPECT_NE(error.failure().who.find("none"), std::string::npos);
  }
}

} // namespace
} // namespace troupe::net
