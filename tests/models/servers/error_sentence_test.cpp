// Errors as vLLM, FastAPI and SGLang answer them.
#include "models/servers/error_sentence.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::models {
namespace {

TEST(ErrorSentence, AnErrorIsSaidInTheServersWords) {
  EXPECT_EQ(error_sentence(R"({"error":{"message":"too long","code":400}})"),
            "too long");
  EXPECT_EQ(error_sentence(R"({"detail":"Not Found"})"), "Not Found");
  EXPECT_EQ(error_sentence(R"({"error":"Failed to pause"})"),
            "Failed to pause");
  EXPECT_EQ(error_sentence(R"({"success":false,"message":"no such file"})"),
            "no such file");
}

TEST(ErrorSentence, OtherAnswersAreShownFromTheirBeginning) {
  EXPECT_EQ(error_sentence("Internal Server Error"), "Internal Server Error");
  EXPECT_EQ(error_sentence(std::string(999, 'x')).size(), 300U);
}

} // namespace
} // namespace troupe::models
