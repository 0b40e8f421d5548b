#include "runtime/run_folder/build_identity.hpp"

#include <gmock/gmock.h>

namespace troupe::runtime {
namespace {

TEST(BuildIdentity, NamesVersionBuildAndRegisteredFunctions) {
  EXPECT_THAT(build_identity(),
              ::testing::MatchesRegex("troupe .* \\(build .*, registry "
                                      "[0-9a-f]{16}\\)"));
  EXPECT_EQ(build_identity(), build_identity());
}

TEST(BuildIdentity, RegisteredFunctionsAreHashedInAnyOrder) {
  const auto hash = registry_hash({"loss a", "function b"});
  EXPECT_EQ(hash, registry_hash({"function b", "loss a"}));
  EXPECT_NE(hash, registry_hash({"loss a"}));
  EXPECT_NE(hash, registry_hash({"loss a", "function c"}));
}

} // namespace
} // namespace troupe::runtime
