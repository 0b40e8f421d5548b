#include "config/base/version.hpp"

#include <gmock/gmock.h>

TEST(Version, NamesTheProgram) {
  EXPECT_THAT(troupe::version_text(), ::testing::StartsWith("troupe "));
}
