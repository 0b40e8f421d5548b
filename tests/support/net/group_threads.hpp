// A group whose members are threads of the test.
#pragma once

#include "net/collectives/collectives.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace troupe::testing {

using MakeMember
  = std::function<std::shared_ptr<net::Collectives>(std::uint32_t rank)>;

/// Runs each member in its thread; what it throws becomes its failure. With
/// `leave_together` no member leaves before all have read the results.
inline std::vector<std::optional<Failure>>
run_group(std::uint32_t members, const MakeMember& make,
          const std::function<void(net::Collectives&)>& body,
          bool leave_together) {
  std::vector<std::optional<Failure>> failures(members);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < members; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto group = make(rank);
        body(*group);
        if (leave_together)
          group->barrier("leave");
      } catch (const FailureError& error) {
        failures[rank] = error.failure();
      }
    });
  for (auto& thread : threads)
    thread.join();
  return failures;
}

} // namespace troupe::testing
