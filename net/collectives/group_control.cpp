#include "net/collectives/group_control.hpp"

#include "net/base/defaults.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

namespace troupe::net {

namespace {

using GroupClock = AwakeClock;

/// Spins before sleeping: a few microseconds. More would take the core from the
/// member that everyone waits for.
constexpr int kSpinRounds = 100;
constexpr std::uint32_t kAbortedBit = 1;
constexpr int kFailureRounds = 1000;

void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// the word may be in shared memory, hence no FUTEX_PRIVATE_FLAG
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::milliseconds at_most) {
  const auto nanoseconds
    = std::chrono::duration_cast<std::chrono::nanoseconds>(at_most).count();
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
  limit.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT,
            expected, &limit, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE,
            INT_MAX, nullptr, nullptr, 0);
}

template <std::size_t N>
void copy_text(char (&to)[N], const std::string& from) {
  const std::size_t size = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), size);
  to[size] = '\0';
}

const char* operation_text(std::uint8_t operation) {
  constexpr const char* names[]
    = {"all_reduce_sum", "all_gather", "reduce_scatter_sum",
       "broadcast",      "barrier",    "graph"};
  return operation < std::size(names) ? names[operation] : "?";
}

} // namespace

CallMark make_call_mark(GroupOperation operation, std::size_t count,
                        DType dtype, std::uint32_t root, const char* name) {
  CallMark mark;
  mark.count = count;
  mark.root = root;
  mark.operation = static_cast<std::uint8_t>(operation);
  mark.dtype = static_cast<std::uint8_t>(dtype);
  copy_text(mark.name, name);
  return mark;
}

std::string to_string(const CallMark& mark) {
  std::string text
    = std::string(operation_text(mark.operation)) + " '" + mark.name + "'";
  if (mark.operation < static_cast<std::uint8_t>(GroupOperation::barrier))
    text += " of " + std::to_string(mark.count) + " "
            + std::string(to_string(static_cast<DType>(mark.dtype)));
  if (mark.operation == static_cast<std::uint8_t>(GroupOperation::broadcast))
    text += " from rank " + std::to_string(mark.root);
  return text;
}

GroupWaiter::GroupWaiter(GroupControl& control, const GroupSpec& spec,
                         std::shared_ptr<PeerProcesses> processes)
  : control_(control),
    spec_(spec),
    processes_(std::move(processes)),
    peers_(spec.members.size()) {}

bool GroupWaiter::attach() {
  control_.members[spec_.index].pid = static_cast<std::int32_t>(::getpid());
  const std::uint32_t before = control_.attached.fetch_add(1);
  TROUPE_CHECK(before < spec_.members.size(),
               "group '" + spec_.name + "' was used before");
  return before + 1 == spec_.members.size();
}

void GroupWaiter::begin_call(const CallMark& mark) {
  if (aborted())
    throw_failure();
  call_ = mark;
  // others may still read the previous call, but not the one before it
  control_.members[spec_.index].calls[calls_ % 2] = mark;
  compare_next_ = true;
}

void GroupWaiter::barrier() {
  const std::uint32_t now = control_.generation.load() & ~kAbortedBit;
  control_.members[spec_.index].arrived_at.store(now + 2);
  if (control_.arrived.fetch_add(1) + 1 == spec_.members.size()) {
    control_.arrived.store(0);
    control_.generation.fetch_add(2);
    futex_wake_all(control_.generation);
  } else {
    wait_for(now);
  }
  if (std::exchange(compare_next_, false))
    compare_calls();
}

void GroupWaiter::wait_for(std::uint32_t generation) {
  const auto passed = [&] {
    const std::uint32_t word = control_.generation.load();
    if ((word & ~kAbortedBit) != generation)
      return true; // also if aborted just after
    if (word & kAbortedBit)
      throw_failure();
    return false;
  };
  for (int i = 0; i < kSpinRounds; ++i) {
    if (passed())
      return;
    spin_pause();
  }
  auto last_progress = GroupClock::now();
  std::uint32_t seen = control_.arrived.load();
  while (!passed()) {
    futex_wait(control_.generation, generation, kLivenessSlice);
    if (passed())
      return;
    check_peers(to_string(call_));
    const std::uint32_t arrived = control_.arrived.load();
    if (arrived != seen)
      last_progress = GroupClock::now();
    seen = arrived;
    if (GroupClock::now() - last_progress > spec_.progress_deadline)
      abort({Errc::deadline, "group '" + spec_.name + "'",
             absent_members(generation) + " did not come to " + to_string(call_)
               + " within " + std::to_string(spec_.progress_deadline.count())
               + " ms",
             ""});
  }
}

void GroupWaiter::compare_calls() {
  const std::uint32_t parity = calls_++ % 2;
  for (std::size_t rank = 0; rank < spec_.members.size(); ++rank) {
    const CallMark& theirs = control_.members[rank].calls[parity];
    if (theirs == call_)
      continue;
    abort({Errc::bug, "group '" + spec_.name + "'",
           member_text(spec_.index) + " called " + to_string(call_) + ", "
             + member_text(rank) + " called " + to_string(theirs),
           ""});
    throw_failure();
  }
}

void GroupWaiter::check_peers(const std::string& during) {
  if (!processes_)
    return;
  const std::lock_guard lock(looking_);
  const auto self = static_cast<std::int32_t>(::getpid());
  for (std::size_t rank = 0; rank < spec_.members.size(); ++rank) {
    const std::int32_t pid = control_.members[rank].pid.load();
    if (pid == 0 || pid == self)
      continue;
    if (!peers_[rank])
      peers_[rank] = processes_->find(pid);
    if (peers_[rank]->ended())
      abort({Errc::peer_lost, member_text(rank),
             "the process ended during " + during + " of group '" + spec_.name
               + "'",
             ""});
  }
}

std::string GroupWaiter::member_text(std::size_t rank) const {
  return "rank " + std::to_string(rank) + " (worker "
         + to_string(spec_.members[rank].worker) + ", pid "
         + std::to_string(control_.members[rank].pid.load()) + ")";
}

std::string GroupWaiter::absent_members(std::uint32_t generation) const {
  std::string text;
  for (std::size_t rank = 0; rank < spec_.members.size(); ++rank)
    if (control_.members[rank].arrived_at.load() != generation + 2)
      text += (text.empty() ? "" : ", ") + member_text(rank);
  return text;
}

void GroupWaiter::abort(const Failure& failure) noexcept {
  std::uint32_t none = 0;
  if (control_.failure_state.compare_exchange_strong(none, 1)) {
    control_.failure_code = static_cast<std::uint8_t>(failure.code);
    copy_text(control_.failure_who, failure.who);
    copy_text(control_.failure_what, failure.what);
    copy_text(control_.failure_cause, failure.cause);
    control_.failure_state.store(2);
  }
  // another member writes its failure at once, unless it was killed meanwhile
  for (int i = 0; i < kFailureRounds && control_.failure_state.load() != 2; ++i)
    std::this_thread::yield();
  control_.generation.fetch_or(kAbortedBit);
  futex_wake_all(control_.generation);
}

bool GroupWaiter::aborted() const noexcept {
  return (control_.generation.load() & kAbortedBit) != 0;
}

bool GroupWaiter::is_time_to_look() {
  const std::lock_guard lock(looking_);
  const auto now = GroupClock::now();
  if (now - last_look_ <= kLivenessSlice)
    return false;
  last_look_ = now;
  return true;
}

std::optional<Failure> GroupWaiter::failure() {
  if (!aborted() && is_time_to_look())
    check_peers("calls of its devices");
  return aborted() ? std::optional(group_failure()) : std::nullopt;
}

void GroupWaiter::throw_failure() const {
  throw FailureError(group_failure());
}

/// Returns the failure of an aborted group, written before the bit was set.
Failure GroupWaiter::group_failure() const {
  return {static_cast<Errc>(control_.failure_code), control_.failure_who,
          control_.failure_what, control_.failure_cause};
}

} // namespace troupe::net
