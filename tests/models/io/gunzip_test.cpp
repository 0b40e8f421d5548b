// Text of gzip files.
#include "config/base/error.hpp"
#include "models/io/gunzip.hpp"

#include "tests/support/models/gzip_support.hpp"
#include <gmock/gmock.h>

#include <cstdint>
#include <string>

namespace troupe::models {
namespace {

using ::testing::HasSubstr;
using troupe::testing::gzip;

std::string unpacked(const std::string& packed) {
  std::string text;
  gunzip(packed, "rows.jsonl.gz", [&](std::string_view part) { text += part; });
  return text;
}

std::string gunzip_complaint(const std::string& packed) {
  try {
    unpacked(packed);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(Gunzip, ReadsWhatWasPacked) {
  EXPECT_EQ(unpacked(gzip("{\"a\": 1}\n")), "{\"a\": 1}\n");
  EXPECT_EQ(unpacked(gzip("")), "");
  std::string large;
  for (std::int64_t i = 0; i < 400'000; ++i)
    large += std::to_string(i * 7919) + "\n";
  EXPECT_EQ(unpacked(gzip(large)), large) << "of several parts";
}

TEST(Gunzip, MembersFollowEachOther) {
  EXPECT_EQ(unpacked(gzip("a\n") + gzip("b\n")), "a\nb\n");
}

TEST(Gunzip, ACutOrDamagedFileIsRefusedByName) {
  const auto packed = gzip("some rows\nand more\n");
  for (const std::size_t kept : {2U, 12U, 20U})
    EXPECT_THAT(gunzip_complaint(packed.substr(0, kept)),
                HasSubstr("rows.jsonl.gz: expected a whole gzip file, got one "
                          "that is cut off"))
      << kept;
  auto changed = packed;
  changed[packed.size() - 6] ^= 1; // of the checksum
  EXPECT_THAT(gunzip_complaint(changed), HasSubstr("one that is damaged"));
  EXPECT_THAT(gunzip_complaint(packed + "more"), HasSubstr("is damaged"));
}

} // namespace
} // namespace troupe::models
