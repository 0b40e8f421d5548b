#include "config/base/text_hash.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

// values of the authors' test vectors
TEST(TextHash, IsFnv1a) {
  EXPECT_EQ(text_hash(""), 0xcbf29ce484222325);
  EXPECT_EQ(text_hash("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(text_hash("foobar"), 0x85944171f73967e8);
}

} // namespace
} // namespace troupe
