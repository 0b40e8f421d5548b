// A ring of events with one writer (its thread) and one reader (the drainer).
// Private to trace.cpp and its tests.
#pragma once

#include "config/base/defaults.hpp"
#include "config/trace/trace.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::trace {

class Ring {
public:
  enum Pushed { stored, half_full, lost };

  explicit Ring(std::uint32_t thread_number)
    : thread(thread_number),
      slots_(new Event[capacity]) {}

  /// Appends an event (writer only). Returns `half_full` once per filling,
  /// `lost` if there is no room.
  Pushed push(const Event& event) noexcept {
    const auto tail = tail_.load(std::memory_order_relaxed);
    // the reader's position is loaded only if the last known one says full
    if (tail - seen_head_ >= capacity) [[unlikely]] {
      seen_head_ = head_.load(std::memory_order_acquire);
      if (tail - seen_head_ >= capacity) {
        dropped.fetch_add(1, std::memory_order_relaxed);
        return lost;
      }
    }
    slots_[tail % capacity] = event;
    tail_.store(tail + 1, std::memory_order_release);
    return (tail + 1) % (capacity / 2) == 0 ? half_full : stored;
  }

  /// Appends all stored events to `events`, in order (reader only).
  void take_all(std::vector<Event>& events) {
    auto head = head_.load(std::memory_order_relaxed);
    const auto tail = tail_.load(std::memory_order_acquire);
    for (; head != tail; ++head)
      events.push_back(slots_[head % capacity]);
    head_.store(head, std::memory_order_release);
  }

  const std::uint32_t thread;
  std::atomic<bool> ended{false}; ///< its thread has ended: no more pushes
  std::atomic<std::uint64_t> dropped{0};

private:
  static constexpr std::size_t capacity = defaults::trace_ring_events;
  static_assert(std::has_single_bit(capacity));

  std::unique_ptr<Event[]> slots_; // [capacity]
  std::uint64_t seen_head_ = 0; ///< last value of head_ that the writer loaded
  // separate cache lines: writer and reader do not disturb each other
  alignas(64) std::atomic<std::uint64_t> tail_{0}; ///< events pushed so far
  alignas(64) std::atomic<std::uint64_t> head_{0}; ///< events taken so far
};

} // namespace troupe::trace
