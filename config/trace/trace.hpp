// Trace events: fixed-size records in per-thread rings, written to the
// process's file by one drainer thread. A full ring drops and counts, never
// blocks. Before start() everything is a cheap no-op; tracks and names may be
// registered at any time. Times are CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <type_traits>

namespace troupe::trace {

enum class Kind : std::uint8_t {
  begin,   ///< start of a span; spans of one track nest
  end,     ///< end of the innermost open span of that name
  send,    ///< tail of the arrow `flow`
  receive, ///< head of the same arrow
  counter, ///< `amount` holds the bits of a double
  spawn,   ///< start of an actor or process
  exit,
  failure,
};
enum class TrackKind : std::uint8_t { actor, device };

enum class Track : std::uint32_t {}; ///< a row in the viewer
enum class Name : std::uint32_t {};  ///< interned text

struct Event {
  std::int64_t time_ns = 0;
  std::uint64_t flow = 0;
  std::uint64_t amount = 0; ///< bytes, tokens, or the bits of a double
  Track track{};
  Name name{};
  std::uint32_t step = 0;
  std::uint32_t thread = 0; ///< from 1, in order of each thread's first event
  Kind kind = Kind::begin;
  std::uint8_t unused[7] = {}; ///< avoids uninitialized padding in files
};
static_assert(sizeof(Event) == 48 && std::is_trivially_copyable_v<Event>);

namespace internal {
extern std::atomic<bool> enabled_flag;
void record(Kind kind, Track track, Name name, std::uint64_t flow,
            std::uint32_t step, std::uint64_t amount) noexcept;
} // namespace internal

/// Creates `file` (and its folder) and starts the drainer thread.
/// `process_number` is part of flow ids: unique in the run, below 2^24. At
/// `max_bytes` the oldest events make room for the newest; 0: no limit. Throws
/// FailureError if the file cannot be created.
void start(const std::filesystem::path& file, std::string_view process_name,
           std::uint32_t process_number, std::uint64_t max_bytes = 0);
/// Drains, writes, closes. A second call does nothing.
void stop();
inline bool enabled() noexcept {
  return internal::enabled_flag.load(std::memory_order_relaxed);
}
/// Waits until everything that this thread has recorded is in the file (tests,
/// abort).
void flush();

/// Interns a text; equal texts (and kinds) get equal ids. Takes a lock and a
/// look-up: keep the id.
Track track(std::string_view name, TrackKind kind);
Name name(std::string_view text);

inline void begin(Track track, Name name, std::uint32_t step = 0,
                  std::uint64_t amount = 0) noexcept {
  if (enabled())
    internal::record(Kind::begin, track, name, 0, step, amount);
}
inline void end(Track track, Name name) noexcept {
  if (enabled())
    internal::record(Kind::end, track, name, 0, 0, 0);
}
inline void send(Track track, Name name, std::uint64_t flow, std::uint32_t step,
                 std::uint64_t bytes) noexcept {
  if (enabled())
    internal::record(Kind::send, track, name, flow, step, bytes);
}
inline void receive(Track track, Name name, std::uint64_t flow,
                    std::uint32_t step) noexcept {
  if (enabled())
    internal::record(Kind::receive, track, name, flow, step, 0);
}
void counter(Track track, Name name, double value) noexcept;
inline void spawn(Track track, Name name) noexcept {
  if (enabled())
    internal::record(Kind::spawn, track, name, 0, 0, 0);
}
inline void exit(Track track, Name name) noexcept {
  if (enabled())
    internal::record(Kind::exit, track, name, 0, 0, 0);
}
inline void failure(Track track, Name name) noexcept {
  if (enabled())
    internal::record(Kind::failure, track, name, 0, 0, 0);
}

/// Calls begin() in its constructor and end() in its destructor.
class Span {
public:
  Span(Track track, Name name, std::uint32_t step = 0,
       std::uint64_t amount = 0) noexcept
    : track_(track),
      name_(name),
      open_(enabled()) {
    if (open_)
      internal::record(Kind::begin, track, name, 0, step, amount);
  }
  ~Span() {
    if (open_)
      internal::record(Kind::end, track_, name_, 0, 0, 0);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

private:
  Track track_;
  Name name_;
  bool open_;
};

/// Returns a flow id unique over the run's processes (process_number << 40 |
/// counter), never 0.
std::uint64_t next_flow() noexcept;
/// Returns the number of events lost since start(): full rings, a full disk.
std::uint64_t dropped() noexcept;

} // namespace troupe::trace
