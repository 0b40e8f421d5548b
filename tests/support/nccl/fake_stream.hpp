// Streams of fake_nccl.cpp: calls that go on elsewhere are counted as they
// begin and end, so that a stream is ready when all of them have ended, and all
// that it was told to wait for in other streams.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::fake_nccl {

/// A place in a stream: all calls before it, and what the stream waited for.
struct Mark {
  struct Stream* stream = nullptr;
  std::size_t calls = 0; ///< of the stream that are before it
  std::vector<Mark> awaited = {};

  bool is_reached() const;
};

/// A direction of messages between two members.
struct Direction {
  const void* communicator = nullptr; ///< null: no message
  int sender = 0;
  int receiver = 0;
  bool operator==(const Direction&) const = default;
};

/// A stream of calls that go on; kept for ever. They end in their order.
struct Stream {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t begun = 0;
  std::size_t ended = 0;
  std::optional<Direction> one_way; ///< of all calls that are pending
  std::vector<Mark> awaited;        ///< in other streams

  /// Returns how many calls were pending before; 0 if all are messages of this
  /// direction, which wait for each other anyway.
  std::size_t begin(const Direction& direction) {
    const std::lock_guard lock(mutex);
    const std::size_t pending = begun++ - ended;
    const bool is_alike = pending == 0 || one_way == direction;
    one_way.reset();
    if (is_alike && direction.communicator != nullptr)
      one_way = direction;
    return one_way ? 0 : pending;
  }
  void end() {
    const std::lock_guard lock(mutex);
    ++ended;
    changed.notify_all();
  }
  Mark mark() {
    Mark made{.stream = this};
    {
      const std::lock_guard lock(mutex);
      made.calls = begun;
      made.awaited = awaited;
    }
    std::erase_if(made.awaited,
                  [](const Mark& one) { return one.is_reached(); });
    const std::lock_guard lock(mutex);
    awaited = made.awaited;
    return made;
  }
  void wait_for(Mark mark) {
    const std::lock_guard lock(mutex);
    awaited.push_back(std::move(mark));
  }
  bool has_ended(std::size_t calls) {
    const std::lock_guard lock(mutex);
    return ended >= calls;
  }
};

inline bool Mark::is_reached() const {
  return (stream == nullptr || stream->has_ended(calls))
         && std::ranges::all_of(awaited, &Mark::is_reached);
}

} // namespace troupe::fake_nccl
