#include "config/trace/trace.hpp"

#include "config/base/defaults.hpp"
#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "config/trace/trace_at.hpp"
#include "config/trace/trace_ring.hpp"
#include "config/trace/trace_writer.hpp"

#include <bit>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace troupe::trace {

std::atomic<bool> internal::enabled_flag{false};

namespace {

/// The process's trace: rings of all threads, interned texts, the drainer.
/// Never destroyed, since threads may record while the process ends.
struct TraceState {
  std::mutex control_mutex; ///< serializes start and stop

  std::mutex rings_mutex;
  std::vector<std::shared_ptr<Ring>> rings;
  std::uint32_t next_thread = 1;

  std::mutex names_mutex;
  std::map<std::pair<std::string, TrackKind>, std::uint32_t> track_ids;
  std::map<std::string, std::uint32_t, std::less<>> name_ids;
  std::deque<TrackInfo> tracks;
  std::deque<std::string> names;

  std::mutex drain_mutex;
  std::condition_variable drain_wanted;
  std::condition_variable drain_done;
  bool stop_wanted = false;
  std::uint64_t drains_asked = 0;
  std::uint64_t drains_done = 0;
  std::thread drainer;
  std::optional<TraceWriter> writer; ///< used by the drainer while it runs

  std::atomic<std::uint64_t> lost{0}; ///< in addition to the rings' own counts
  std::atomic<std::uint64_t> lost_in_ended_rings{0};
  std::atomic<std::uint64_t> lost_before_start{0};
  std::atomic<std::uint64_t> next_flow{1};
  std::atomic<std::uint64_t> process_bits{0};
};

TraceState& trace_state() {
  static auto* state = new TraceState;
  return *state;
}

/// Marks the thread's ring as ended when the thread ends; the drainer takes the
/// remaining events and releases the ring.
struct RingOwner {
  std::shared_ptr<Ring> ring;
  ~RingOwner();
};

// trivial thread-locals: they may be read after RingOwner is gone
thread_local Ring* thread_ring = nullptr;
thread_local bool thread_ended = false;
thread_local RingOwner thread_ring_owner;

RingOwner::~RingOwner() {
  thread_ended = true;
  thread_ring = nullptr;
  if (ring)
    ring->ended.store(true, std::memory_order_release);
}

/// Returns the calling thread's ring, created at its first event; null while
/// the thread ends.
Ring* make_thread_ring() noexcept {
  if (thread_ended)
    return nullptr;
  try {
    auto& state = trace_state();
    std::lock_guard lock(state.rings_mutex);
    auto ring = std::make_shared<Ring>(state.next_thread++);
    state.rings.push_back(ring);
    thread_ring_owner.ring = ring;
    thread_ring = ring.get();
    return thread_ring;
  } catch (const std::bad_alloc&) {
    return nullptr; // counted by the caller
  }
}

/// Takes all events out of all rings; releases the rings of ended threads.
void collect_events(TraceState& state, std::vector<Event>& events) {
  std::vector<std::shared_ptr<Ring>> rings;
  {
    std::lock_guard lock(state.rings_mutex);
    rings = state.rings;
  }
  for (const auto& ring : rings) {
    const bool ended = ring->ended.load(std::memory_order_acquire);
    ring->take_all(events);
    if (!ended)
      continue;
    state.lost_in_ended_rings += ring->dropped.load();
    std::lock_guard lock(state.rings_mutex);
    std::erase(state.rings, ring);
  }
}

void write_once(TraceState& state, std::vector<Event>& events) {
  events.clear();
  collect_events(state, events);
  {
    // after the events: every id in them is interned by now
    std::lock_guard lock(state.names_mutex);
    state.writer->add_texts(state.tracks, state.names);
  }
  state.lost += state.writer->write(events, dropped());
}

void drain_until_stopped(TraceState& state) {
  std::vector<Event> events;
  std::unique_lock lock(state.drain_mutex);
  while (true) {
    state.drain_wanted.wait_for(lock, defaults::trace_drain_period, [&] {
      return state.stop_wanted || state.drains_asked > state.drains_done;
    });
    const bool last = state.stop_wanted;
    const auto asked = state.drains_asked;
    lock.unlock();
    write_once(state, events);
    lock.lock();
    state.drains_done = asked;
    state.drain_done.notify_all();
    if (last)
      return;
  }
}

} // namespace

namespace {

void record_at(std::int64_t time_ns, Kind kind, Track track, Name name,
               std::uint64_t flow, std::uint32_t step,
               std::uint64_t amount) noexcept {
  Ring* ring = thread_ring;
  if (!ring) [[unlikely]] {
    ring = make_thread_ring();
    if (!ring) {
      ++trace_state().lost;
      return;
    }
  }
  Event event;
  event.time_ns = time_ns;
  event.flow = flow;
  event.amount = amount;
  event.track = track;
  event.name = name;
  event.step = step;
  event.thread = ring->thread;
  event.kind = kind;
  // a burst: do not wait for the period; a lost wake-up only delays the drain
  if (ring->push(event) == Ring::half_full) [[unlikely]]
    trace_state().drain_wanted.notify_one();
}

} // namespace

std::int64_t now_ns() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

void internal::record(Kind kind, Track track, Name name, std::uint64_t flow,
                      std::uint32_t step, std::uint64_t amount) noexcept {
  record_at(now_ns(), kind, track, name, flow, step, amount);
}

void send_at(std::int64_t time_ns, Track track, Name name, std::uint64_t flow,
             std::uint32_t step, std::uint64_t bytes) noexcept {
  if (enabled())
    record_at(time_ns, Kind::send, track, name, flow, step, bytes);
}

void start(const std::filesystem::path& file, std::string_view process_name,
           std::uint32_t process_number, std::uint64_t max_bytes) {
  TROUPE_CHECK(process_number < 1u << 24, "process number beyond 24 bits");
  auto& state = trace_state();
  std::lock_guard control(state.control_mutex);
  TROUPE_CHECK(!state.drainer.joinable(), "tracing was started before");
  state.writer.emplace(file, process_name, process_number, max_bytes);
  std::vector<Event> leftovers; // from threads that raced with the last stop()
  collect_events(state, leftovers);
  state.lost_before_start += dropped();
  state.process_bits = std::uint64_t{process_number} << 40;
  state.stop_wanted = false;
  state.drainer = std::thread([&state] { drain_until_stopped(state); });
  internal::enabled_flag = true;
}

void stop() {
  auto& state = trace_state();
  std::lock_guard control(state.control_mutex);
  if (!state.drainer.joinable())
    return;
  internal::enabled_flag = false;
  {
    std::lock_guard lock(state.drain_mutex);
    state.stop_wanted = true;
  }
  state.drain_wanted.notify_one();
  state.drainer.join();
  {
    // a flush() that came after the last drain must not wait forever
    std::lock_guard lock(state.drain_mutex);
    state.drains_done = state.drains_asked;
  }
  state.drain_done.notify_all();
  state.writer->close(dropped());
  state.writer.reset();
}

void flush() {
  auto& state = trace_state();
  std::unique_lock lock(state.drain_mutex);
  if (!enabled())
    return;
  const auto ticket = ++state.drains_asked;
  state.drain_wanted.notify_one();
  state.drain_done.wait(lock, [&] { return state.drains_done >= ticket; });
}

Track track(std::string_view text, TrackKind kind) {
  auto& state = trace_state();
  std::lock_guard lock(state.names_mutex);
  const auto limit = defaults::trace_names_limit;
  std::string key(state.tracks.size() < limit ? text : "(too many tracks)");
  auto [at, added]
    = state.track_ids.try_emplace({key, kind}, state.tracks.size());
  if (added)
    state.tracks.push_back({std::move(key), kind});
  return Track{at->second};
}

Name name(std::string_view text) {
  auto& state = trace_state();
  std::lock_guard lock(state.names_mutex);
  if (auto at = state.name_ids.find(text); at != state.name_ids.end())
    return Name{at->second};
  const auto limit = defaults::trace_names_limit;
  std::string key(state.names.size() < limit ? text : "(too many names)");
  auto [at, added] = state.name_ids.try_emplace(key, state.names.size());
  if (added)
    state.names.push_back(std::move(key));
  return Name{at->second};
}

void counter(Track track, Name name, double value) noexcept {
  if (enabled())
    internal::record(Kind::counter, track, name, 0, 0,
                     std::bit_cast<std::uint64_t>(value));
}

std::uint64_t next_flow() noexcept {
  auto& state = trace_state();
  return state.process_bits.load(std::memory_order_relaxed)
         | state.next_flow.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t dropped() noexcept {
  auto& state = trace_state();
  std::uint64_t sum = state.lost + state.lost_in_ended_rings;
  std::lock_guard lock(state.rings_mutex);
  for (const auto& ring : state.rings)
    sum += ring->dropped.load(std::memory_order_relaxed);
  return sum - state.lost_before_start;
}

} // namespace troupe::trace
