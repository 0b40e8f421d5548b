// The limit of open files: raised, restored for other programs, and named when
// it is reached.
#include "config/base/defaults.hpp"
#include "net/base/open_files.hpp"
#include "net/child_programs/child_pool.hpp"

#include "tests/net/dist/forked_peer.hpp"
#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <future>
#include <stdexcept>

namespace troupe::net {
namespace {

using testing::ForkedPeer;
using ::testing::HasSubstr;
using testing::Talk;

void set_soft_limit(rlim_t most) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = most;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

rlim_t hard_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_max;
}

// In separate processes: a limit is per process, and the first one is
// remembered.

TEST(OpenFiles, TheSoftLimitIsRaisedToTheHardLimit) {
  ForkedPeer peer([](const Talk& talk) {
    set_soft_limit(64);
    raise_open_file_limit();
    talk.say(open_file_limit());
    talk.say(static_cast<std::uint64_t>(first_open_file_limit().rlim_cur));
  });
  EXPECT_EQ(peer.talk().hear<std::uint64_t>(), hard_limit());
  EXPECT_EQ(peer.talk().hear<std::uint64_t>(), 64U);
  EXPECT_EQ(peer.wait(), 0);
}

TEST(OpenFiles, OtherProgramsGetTheOriginalLimit) {
  const support::TempFolder folder;
  const auto file = folder / "limit";
  ForkedPeer peer([&](const Talk&) {
    set_soft_limit(64);
    raise_open_file_limit();
    std::promise<void> ended;
    ChildPool pool([&](const ChildExit&) { ended.set_value(); });
    ChildSpec spec;
    spec.name = "shell";
    spec.argv = {"sh", "-c", "ulimit -n"};
    spec.output_file = file;
    pool.start(spec);
    ended.get_future().wait();
  });
  EXPECT_EQ(peer.wait(), 0);
  EXPECT_EQ(support::read_text(file), "64\n");
}

TEST(OpenFiles, AReachedLimitIsNamedWithItsNumber) {
  EXPECT_FALSE(why_no_open_file());
  ForkedPeer peer([](const Talk&) {
    set_soft_limit(3);
    const auto why = why_no_open_file().value_or("");
    EXPECT_THAT(why, HasSubstr("too many open files"));
    EXPECT_THAT(why, HasSubstr("all 3 open"));
    EXPECT_THAT(why, HasSubstr("ulimit -n"));
    if (::testing::Test::HasFailure())
      throw std::runtime_error("not said");
  });
  EXPECT_EQ(peer.wait(), 0);
}

TEST(OpenFiles, OnlyALimitThatStaysReachedEndsAProcess) {
  ForkedPeer peer([](const Talk&) {
    OpenFilesWatch watch;
    auto now = OpenFilesWatch::Clock::now();
    const auto next_look = [&] {
      now += defaults::heartbeat_period;
      return watch.look("worker", now);
    };
    const auto before = open_file_limit();
    set_soft_limit(3);
    for (int i = 0; i < 6; ++i) // the first and the last are 2.5 s apart
      EXPECT_FALSE(next_look());
    set_soft_limit(before);
    EXPECT_FALSE(next_look()); // a success, which resets the count
    set_soft_limit(3);
    for (int i = 0; i < 6; ++i)
      EXPECT_FALSE(next_look());
    EXPECT_FALSE(watch.look("worker", now)); // too soon to check again
    const auto failure = next_look();
    set_soft_limit(before);
    if (!failure || ::testing::Test::HasFailure())
      throw std::runtime_error("not as it should");
    EXPECT_EQ(failure->who, "worker");
    EXPECT_THAT(failure->what, HasSubstr("too many open files"));
    if (::testing::Test::HasFailure())
      throw std::runtime_error("not said");
  });
  EXPECT_EQ(peer.wait(), 0);
}

} // namespace
} // namespace troupe::net
