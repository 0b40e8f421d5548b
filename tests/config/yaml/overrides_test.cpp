#include "config/settings/settings.hpp"
#include "config/yaml/overrides.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include <string>

namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string mistake_of(const std::string& word) {
  try {
    troupe::load_settings({}, {"workflow=sft", word});
  } catch (const troupe::ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Overrides, InvalidYamlNamesItsSetting) {
  EXPECT_THAT(
    mistake_of("rollout.stop=[a"),
    StartsWith("command line: rollout.stop: expected YAML, got something"));
  EXPECT_THAT(mistake_of("rollout.stop=[{a: 1, a: 2}]"),
              StartsWith("command line: rollout.stop.a: expected each key "
                         "once, got it again"));
}

TEST(Overrides, AnAddressToListenOnIsNotTakenAsAName) {
  EXPECT_EQ(mistake_of("cluster.bind=localhost"),
            "command line: cluster.bind: expected an IP address or auto, got "
            "'localhost'; try auto");
  for (const char* address : {"auto", "0.0.0.0", "10.0.0.1", "::1"})
    EXPECT_THAT(mistake_of(std::string("cluster.bind=") + address),
                Not(HasSubstr("cluster.bind")));
}

} // namespace
