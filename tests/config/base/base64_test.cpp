#include "config/base/base64.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace troupe {
namespace {

TEST(Base64, HasTheBytesOfRfc4648) {
  const std::pair<std::string, const char*> pairs[] = {
    {"", ""},        {"f", "Zg=="},          {"fo", "Zm8="},
    {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}, {{"\xFB\xFF\0", 3}, "+/8A"},
  };
  for (const auto& [bytes, text] : pairs) {
    EXPECT_EQ(from_base64(text), bytes);
    EXPECT_EQ(to_base64(bytes), text);
  }
}

TEST(Base64, ReadsBackWhatItWrote) {
  std::string bytes;
  for (int i = 0; i < 259; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes) << i << " bytes";
    bytes += static_cast<char>(i * 37);
  }
}

TEST(Base64, OtherCharactersAreRefused) {
  for (const char* text : {"Zm 9v", "Zm9v\n", "Zm-v", "Z=9v"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

} // namespace
} // namespace troupe
