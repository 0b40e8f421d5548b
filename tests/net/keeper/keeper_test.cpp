#include "config/base/error.hpp"
#include "net/keeper/keeper.hpp"
#include "net/keeper/keeper_client.hpp"

#include <gtest/gtest.h>

#include "tests/support/net/running_keeper.hpp"
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
using troupe::testing::RunningKeeper;

std::string content(const Descriptor& file, std::size_t size) {
  std::string text(size, '\0');
  const auto got = ::pread(file.get(), text.data(), size, 0);
  return text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
}

TEST(Keeper, WhatAClientStoresOutlivesIt) {
  RunningKeeper keeper;
  {
    auto first = keeper.client();
    const Descriptor file = first.open("actor/0");
    ASSERT_EQ(::pwrite(file.get(), "weights", 7, 0), 7);
    EXPECT_EQ(content(first.open("actor/1"), 7), "") << "another file";
  }
  auto second = keeper.client();
  EXPECT_EQ(content(second.open("actor/0"), 7), "weights");
  second.end();
  EXPECT_TRUE(keeper.ends_within(10s));
}

TEST(Keeper, EndsAfterItsPatienceWithoutClientsOnly) {
  RunningKeeper keeper(1s); // in which the client comes
  {
    auto client = keeper.client();
    ASSERT_TRUE(client.find());
    EXPECT_FALSE(keeper.ends_within(1500ms)) << "a client is connected";
  }
  EXPECT_TRUE(keeper.ends_within(10s));
}

TEST(Keeper, HasItsNameAlone) {
  RunningKeeper keeper;
  EXPECT_FALSE(run_keeper(keeper.name(), 1min, [] { FAIL(); }));
  keeper.client().end();
}

TEST(KeeperClient, FindsNoKeeperWhereNoneIs) {
  KeeperClient client("test-nobody", {"/bin/false"});
  EXPECT_FALSE(client.find());
  client.end(); // nothing to end
  EXPECT_THROW(client.open("actor/0"), FailureError) << "/bin/false is none";
}

TEST(KeeperClient, AKeeperThatHasEndedIsAFailure) {
  RunningKeeper keeper;
  auto client = keeper.client();
  client.open("actor/0");
  keeper.client().end();
  ASSERT_TRUE(keeper.ends_within(10s));
  EXPECT_THROW(client.open("actor/0"), FailureError);
}

/// A process of another user that listens under a keeper's name.
class KeeperStranger {
public:
  explicit KeeperStranger(const std::string& name) {
    EXPECT_EQ(::pipe(ends_), 0);
    child_ = ::fork();
    if (child_ == 0)
      take(name);
    char ready = 0;
    EXPECT_EQ(::read(ends_[0], &ready, 1), 1);
  }
  ~KeeperStranger() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

private:
  [[noreturn]] void take(const std::string& name) const {
    constexpr uid_t nobody = 65534;
    const auto address = keeper_address(name);
    const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (::setuid(nobody) != 0
        || ::bind(listener, address.get(), address.size_bytes) != 0
        || ::listen(listener, 8) != 0 || ::write(ends_[1], "r", 1) != 1)
      _exit(1);
    for (;;)
      ::pause();
  }

  int ends_[2] = {-1, -1};
  pid_t child_ = -1;
};

TEST(KeeperClient, GivesNothingToAStrangerWhoHasTheName) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can be another user";
  const std::string name = "test-taken-" + std::to_string(::getpid());
  const KeeperStranger stranger(name);
  KeeperClient client(name, {"/bin/true"});
  EXPECT_FALSE(client.find());
  client.end(); // not theirs to end
  try {
    client.open("actor/0");
    FAIL() << "a file of a stranger";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::io);
    EXPECT_NE(error.failure().what.find("another user has its name"),
              std::string::npos);
  }
  EXPECT_FALSE(run_keeper(name, 1min, [] { FAIL(); })) << "the name is taken";
}

} // namespace
} // namespace troupe::net
