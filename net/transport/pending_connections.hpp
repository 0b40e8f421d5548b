// Connections that have not yet shown who they are. Anybody who reaches a port
// may connect and say nothing, and each one costs a descriptor. So few of them
// wait at a time, and none for long; all who accept connections apply this one
// rule. Not thread-safe: an object belongs to the thread that accepts.
#pragma once

#include "config/base/awake_clock.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace troupe::net {

class PendingConnections
  : public std::enable_shared_from_this<PendingConnections> {
public:
  using Time = AwakeClock::time_point;

  /// Counts a connection as pending until it has greeted, or ended.
  class Entry {
  public:
    Entry() = default;
    Entry(Entry&& other) noexcept = default;
    Entry& operator=(Entry&& other) noexcept;
    ~Entry();

    /// Sets what closes the connection if it takes too long.
    void when_late(std::function<void()> close);
    void leave();

  private:
    friend class PendingConnections;
    Entry(std::shared_ptr<PendingConnections> pending, std::uint64_t number)
      : pending_(std::move(pending)),
        number_(number) {}

    std::shared_ptr<PendingConnections> pending_; ///< nullptr: has left
    std::uint64_t number_ = 0;
  };

  Entry add(Time now);
  bool full() const;
  bool empty() const {
    return waiting_.empty();
  }
  /// Closes the connections whose time is over.
  void close_late(Time now);
  /// Closes the one that has been pending longest, after a moment, for a
  /// newcomer that waits outside. Returns whether there is room.
  bool make_room(Time now);

private:
  struct Waiting {
    Time since;
    std::function<void()> close;
  };
  void close_first();

  std::map<std::uint64_t, Waiting> waiting_; ///< in order of arrival
  std::uint64_t next_ = 0;
};

} // namespace troupe::net
