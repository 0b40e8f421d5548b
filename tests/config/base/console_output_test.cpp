#include "config/base/console_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace troupe {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A pipe of one page.
class ConsoleOutputTest : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(::pipe(ends_), 0);
    ::fcntl(ends_[1], F_SETPIPE_SZ, 4096);
  }
  void TearDown() override {
    for (const int end : ends_)
      if (end >= 0)
        ::close(end);
  }
  void close_reader() {
    ::close(ends_[0]);
    ends_[0] = -1;
  }
  /// Reads until there is nothing for a tenth of a second.
  std::string read_all() {
    std::string text;
    pollfd data{.fd = ends_[0], .events = POLLIN, .revents = 0};
    while (::poll(&data, 1, /*timeout=*/100) > 0) {
      char bytes[4096];
      const auto count = ::read(ends_[0], bytes, sizeof(bytes));
      if (count <= 0)
        break;
      text.append(bytes, static_cast<std::size_t>(count));
    }
    return text;
  }
  int ends_[2] = {-1, -1};
};

std::string line(int i) {
  return fmt::format("line {} of a run that goes on\n", i);
}

TEST_F(ConsoleOutputTest, WhatIsReadArrivesInOrder) {
  ConsoleOutput output(ends_[1]);
  output.write("one\n");
  output.write(std::string(3000, 'x') + "\n");
  EXPECT_TRUE(read_all() == "one\n" + std::string(3000, 'x') + "\n");
}

TEST_F(ConsoleOutputTest, AFullPipeStopsNobodyAndLosesNothingBelowTheLimit) {
  ConsoleOutput output(ends_[1]);
  std::string want;
  for (int i = 0; i < 2000; ++i) {
    output.write(line(i));
    want += line(i);
  }
  EXPECT_FALSE(output.wait(std::chrono::milliseconds(0)));
  std::string got;
  while (!output.wait(std::chrono::milliseconds(10)))
    got += read_all();
  got += read_all();
  EXPECT_EQ(got, want);
}

TEST_F(ConsoleOutputTest, BeyondTheLimitTheOldestAreLeftOutAndCounted) {
  ConsoleOutput output(ends_[1], /*limit_bytes=*/8192);
  std::size_t bytes = 0;
  for (int i = 0; i < 2000; ++i) {
    output.write(line(i));
    bytes += line(i).size();
  }
  std::string got = read_all();
  while (!output.wait(std::chrono::milliseconds(10)))
    got += read_all();
  got += read_all();
  EXPECT_THAT(got, StartsWith(line(0) + line(1)));
  EXPECT_THAT(got,
              HasSubstr(" lines were left out: nobody read this output)\n"));
  EXPECT_THAT(got, EndsWith(line(1998) + line(1999)));
  EXPECT_LT(got.size(), 4096U + 8192U + 200U);
  EXPECT_GT(bytes, 50'000U);
}

TEST_F(ConsoleOutputTest, AReaderThatIsGoneIsNotWaitedFor) {
  std::signal(SIGPIPE, SIG_IGN);
  close_reader();
  ConsoleOutput output(ends_[1]);
  for (int i = 0; i < 1000; ++i)
    output.write(line(i));
  EXPECT_TRUE(output.wait(std::chrono::milliseconds(0)));
}

} // namespace
} // namespace troupe
