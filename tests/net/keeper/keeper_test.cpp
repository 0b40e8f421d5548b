#include "config/base/error.hpp"
#include "net/keeper/keeper.hpp"
#include "net/keeper/keeper_client.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <future>
#include <string>
#include <thread>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;

/// A keeper on a thread of its own.
class RunningKeeper {
public:
  explicit RunningKeeper(std::chrono::milliseconds patience = 1min)
    : ended_(std::async(std::launch::async, [this, patience] {
        return run_keeper(name(), patience, [this] { listening_.set_value(); });
      })) {
    listening_.get_future().wait();
  }
  std::string name() const {
    return "test-" + std::to_string(::getpid()) + "-"
           + std::to_string(reinterpret_cast<std::uintptr_t>(this));
  }
  KeeperClient client() const {
    return KeeperClient(name(), {"/bin/false"});
  }
  bool ends_within(std::chrono::milliseconds time) {
    return ended_.wait_for(time) == std::future_status::ready;
  }

private:
  std::promise<void> listening_;
  std::future<bool> ended_;
};

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
  RunningKeeper keeper(300ms);
  {
    auto client = keeper.client();
    ASSERT_TRUE(client.find());
    EXPECT_FALSE(keeper.ends_within(600ms)) << "a client is connected";
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

} // namespace
} // namespace troupe::net
