// Collectives as work of a device's streams: a call is enqueued between kernels
// and returns, without a wait of the host and without a meeting of the members.
// Errors that a meeting would find are found later (I7): a watchdog ends the
// group when a call does not end, and members compare the calls they made when
// they meet next. Captured calls are part of their graph: they have no events,
// who launches the graph says so (`launch`), and they count once all members
// have captured theirs (`end_capture`).
//
// Each member is driven by one thread at a time. Memory of a call must not be
// freed or written before the thread's stream has come after the call.
#pragma once

#include "config/base/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace troupe::net {

/// The stream that a call is enqueued in.
enum class StreamOrder : std::uint8_t {
  in_line, ///< in the calling thread's stream, between its kernels
  beside,  ///< in the group's stream, after the thread's kernels so far, and
           ///< beside those that follow until `join`; never captured
};

/// A call that was enqueued.
struct StreamTicket {
  std::uint64_t number = 0; ///< 0: nothing to wait for
};

class StreamCollectives {
public:
  virtual ~StreamCollectives() = default;

  // As the calls of Collectives of the same name, which see. Throw
  // FailureError if the group has failed.
  virtual StreamTicket all_reduce_sum(void* data, std::size_t count,
                                      DType dtype, const char* name,
                                      StreamOrder order)
    = 0;
  virtual StreamTicket all_gather(const void* mine, void* all,
                                  std::size_t count, DType dtype,
                                  const char* name, StreamOrder order)
    = 0;
  virtual StreamTicket reduce_scatter_sum(const void* all, void* mine,
                                          std::size_t count, DType dtype,
                                          const char* name, StreamOrder order)
    = 0;
  virtual StreamTicket broadcast(void* data, std::size_t count, DType dtype,
                                 std::uint32_t root, const char* name,
                                 StreamOrder order)
    = 0;

  /// Orders the thread's kernels from here on after the call, without waiting.
  virtual void join(StreamTicket ticket) = 0;
  /// Launches, by `graph`, work in the thread's stream that holds captured
  /// calls of the group, and watches it like a call of this name.
  virtual void launch(const char* name, const std::function<void()>& graph) = 0;
  /// Says, once members have met after a capture, if all of them keep its
  /// graph. Else its calls count as not made: a member whose device refused may
  /// have made fewer.
  virtual void end_capture(bool is_kept) = 0;

  /// Throws the group's failure, without a meeting. Calls that an abort ended
  /// leave wrong numbers, so the host asks after it has waited for its stream
  /// and before it uses what came from calls.
  virtual void check() = 0;
  /// Meets the other members and throws unless all have made the same calls;
  /// meetings of Collectives do so too.
  virtual void compare() = 0;
};

} // namespace troupe::net
