// A keeper on a thread of the test, with a name of its own.
#pragma once

#include "net/keeper/keeper.hpp"
#include "net/keeper/keeper_client.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <string>

namespace troupe::testing {

/// A keeper on a thread of its own.
class RunningKeeper {
public:
  explicit RunningKeeper(std::chrono::milliseconds patience
                         = std::chrono::minutes(1))
    : ended_(std::async(std::launch::async, [this, patience] {
        return net::run_keeper(name(), patience,
                               [this] { listening_.set_value(); });
      })) {
    listening_.get_future().wait();
  }
  std::string name() const {
    return "test-" + std::to_string(::getpid()) + "-"
           + std::to_string(reinterpret_cast<std::uintptr_t>(this));
  }
  net::KeeperClient client() const {
    return net::KeeperClient(name(), {"/bin/false"});
  }
  bool ends_within(std::chrono::milliseconds time) {
    return ended_.wait_for(time) == std::future_status::ready;
  }

private:
  std::promise<void> listening_;
  std::future<bool> ended_;
};

} // namespace troupe::testing
