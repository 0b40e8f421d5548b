#include "runtime/metrics/tensorboard_file.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace troupe::runtime {
namespace {

TEST(TensorboardFile, ChecksumsAreCrc32c) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);           // its check value
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU); // RFC 3720, B.4
}

TEST(TensorboardFile, ARecordIsLengthDataAndTheirChecksums) {
  const auto record = tf_record("ab");
  ASSERT_EQ(record.size(), 8u + 4 + 2 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\2\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 2), "ab");
}

TEST(TensorboardFile, AnEventHasItsStepAndFiniteScalars) {
  StepMetrics metrics;
  metrics.step = 300;
  metrics.set("a/b", 1.5);
  metrics.set("nan", std::nan(""));
  // protobuf by hand: wall_time 2.0, step 300, summary {value {tag, 1.5f}}
  EXPECT_EQ(scalar_event(metrics, 2.0), std::string("\x09\0\0\0\0\0\0\0\x40"
                                                    "\x10\xac\x02"
                                                    "\x2a\x0c"
                                                    "\x0a\x0a"
                                                    "\x0a\x03"
                                                    "a/b"
                                                    "\x15\0\0\xc0\x3f",
                                                    9 + 3 + 2 + 2 + 2 + 3 + 5));
}

} // namespace
} // namespace troupe::runtime
