#include "config/base/plain_text.hpp"

#include <gtest/gtest.h>

namespace {

using troupe::is_plain_text;

TEST(PlainText, IsUtf8InOneLine) {
  for (const char* good : {"", "tiny_ppo", "a b", "Größe", "名前", "it's $x"})
    EXPECT_TRUE(is_plain_text(good)) << good;
  for (const char* bad : {"x\ny", "x\ry", "\x1b[2J", "\x7f", "a\xff", "\xc3"})
    EXPECT_FALSE(is_plain_text(bad)) << bad;
  EXPECT_FALSE(is_plain_text(std::string("a\0b", 3)));
}

} // namespace
