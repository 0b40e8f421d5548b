#include "runtime/last_words.hpp"

#include <gtest/gtest.h>

#include "troupe/at_work.hpp"

#include <sstream>

namespace {

TEST(LastWords, TellWhoseWorkItWasAndWhatItSaid) {
  std::istringstream log("2026-01-02 03:04:05.678 info runtime: joined\n"
                         "an assertion of mine\n"
                         + std::string(troupe::crash_words)
                         + "own actor checker with sample 3 of step 1\n"
                           "2026-01-02 03:04:05.678 warning net: closed\n");
  const auto words = troupe::runtime::last_words_of(log);
  EXPECT_EQ(words.work, " in own actor checker with sample 3 of step 1");
  EXPECT_EQ(words.said, "an assertion of mine");
}

} // namespace
