#include "config/base/base64.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(Base64, HasTheBytesOfRfc4648) {
  EXPECT_EQ(from_base64(""), "");
  EXPECT_EQ(from_base64("Zg=="), "f");
  EXPECT_EQ(from_base64("Zm8="), "fo");
  EXPECT_EQ(from_base64("Zm9v"), "foo");
  EXPECT_EQ(from_base64("Zm9vYmFy"), "foobar");
  EXPECT_EQ(from_base64("+/8A"), std::string("\xFB\xFF\0", 3));
}

TEST(Base64, OtherCharactersAreRefused) {
  for (const char* text : {"Zm 9v", "Zm9v\n", "Zm-v", "Z=9v"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

} // namespace
} // namespace troupe
