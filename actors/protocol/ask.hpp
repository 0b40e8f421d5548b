// The one way in which actors send requests (invariant I7). An ask has a name,
// a peer, a deadline, and an arrow in the trace; it ends exactly once, by a
// value or a failure. CAF 0.17 never fails a request to a dead node, so a table
// per process lists all pending asks and fails them when a run fails.
#pragma once

#include "actors/protocol/traced.hpp"
#include "config/base/error.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace troupe::actors {

/// Converts a failure into an error that survives the wire, and back.
caf::error to_error(const Failure& failure);
/// Converts an error of CAF's own; `waited_for` names what was lost.
Failure to_failure(const caf::error& error,
                   const std::string& waited_for = "actor system");
FailureMessage to_failure_message(const Failure& failure);
Failure to_failure(const FailureMessage& message);
/// Converts an exception: ConfigError, FailureError, bad_alloc, bugs.
Failure to_failure(const std::exception& error, const std::string& who);

/// Description of an ask.
struct AskSpec {
  std::string name;                    ///< "run actor_gen on shard 2"
  std::optional<WorkerId> worker = {}; ///< worker that replies; none: here
  /// Limit of the whole ask; zero: the master watches progress instead.
  std::chrono::milliseconds deadline{0};
  bool is_work = true; ///< whether the worker works on it; false for heartbeats
};

/// All pending asks of a process. Thread-safe.
class AskTable {
public:
  using Clock = std::chrono::steady_clock;
  using Owner = caf::typed_actor<ask_failed>;
  struct Wait {
    std::string name;
    std::optional<WorkerId> worker;
    std::chrono::milliseconds waited;
  };

  void add(std::uint64_t id, Owner owner, AskSpec spec);
  void remove(std::uint64_t id);
  /// Fails every ask; later ones fail at once.
  void fail_all(const Failure& failure);
  /// Fails the asks that are past their deadline.
  void expire(Clock::time_point now);
  /// Returns the pending asks and their peers, oldest first.
  std::vector<Wait> waits(Clock::time_point now) const;
  /// Returns what a worker's death interrupts: what `was_at` reports, or
  /// " during run of actor_train in step 3 on device 2", an ask of it or else
  /// of another; without any, " after" its last, or "". After `fail_all`, as
  /// then.
  std::string work_of(WorkerId worker) const;
  void was_at(WorkerId worker, const std::string& work);

private:
  struct Entry {
    Owner owner;
    AskSpec spec;
    Clock::time_point since;
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::unordered_map<std::uint64_t, Entry> failed_; ///< by `fail_all`
  std::map<WorkerId, std::string> last_work_, told_;
  std::optional<Failure> closed_;
};

/// The asks of one actor: a member of its state, handles `fail_atom`.
class Asks {
public:
  Asks() = default;
  explicit Asks(std::shared_ptr<AskTable> table) : table_(std::move(table)) {}
  void open(std::uint64_t id, AskTable::Owner owner, AskSpec spec,
            std::function<void(Failure)> on_failure);
  /// Returns true exactly once per ask; the caller then runs its continuation.
  bool close(std::uint64_t id);
  /// Handles `fail_atom`.
  void fail(std::uint64_t id, const Failure& failure);

private:
  std::shared_ptr<AskTable> table_;
  std::unordered_map<std::uint64_t, std::function<void(Failure)>> pending_;
};

/// Sends (atom, context, order) to `target` and calls exactly one of
/// `on_value(Done&)` and `on_failure(Failure)`, in a handler of `self`.
template <class Done, class SelfPointer, class Target, class Atom, class Order,
          class OnValue, class OnFailure>
void ask(SelfPointer self, const Target& target, Atom atom, Context context,
         Order order, AskSpec spec, OnValue on_value, OnFailure on_failure) {
  context.flow = trace::next_flow();
  const auto flow = context.flow;
  const auto step = context.step.value;
  const auto text = trace::name(caf::to_string(Atom::get_value()));
  const auto name = spec.name;
  self->state.asks.open(flow, AskTable::Owner{self}, std::move(spec),
                        on_failure);
  if (trace::enabled())
    trace::send(self->track(), text, flow, step,
                message_bytes(self->system(), order));
  self->request(target, caf::infinite, atom, context, std::move(order))
    .then(
      [=](Done& done) mutable {
        if (!self->state.asks.close(flow))
          return;
        if (trace::enabled())
          trace::receive(self->track(), text, reply_flow(flow), step);
        on_value(done);
      },
      [=](caf::error& error) mutable {
        if (self->state.asks.close(flow))
          on_failure(to_failure(error, name));
      });
}

/// Sends order i to target i; calls exactly one of `on_all(std::vector<Done>)`,
/// in target order, and `on_failure`, once.
template <class Done, class SelfPointer, class Target, class Atom, class Order,
          class OnAll, class OnFailure>
void ask_all(SelfPointer self, const std::vector<Target>& targets, Atom atom,
             Context context, std::vector<Order> orders,
             std::vector<AskSpec> specs, OnAll on_all, OnFailure on_failure) {
  if (targets.empty())
    return on_all(std::vector<Done>{});
  struct Progress { // a copy per target would be quadratic
    std::vector<Done> values;
    std::size_t missing;
    OnAll on_all;
    OnFailure on_failure;
    bool failed;
  };
  const auto n = targets.size();
  auto progress = std::make_shared<Progress>(
    Progress{std::vector<Done>(n), n, on_all, on_failure, false});
  for (std::size_t i = 0; i < n; ++i)
    ask<Done>(
      self, targets[i], atom, context, std::move(orders[i]),
      std::move(specs[i]),
      [=](Done& done) mutable {
        progress->values[i] = std::move(done);
        if (--progress->missing == 0 && !progress->failed)
          progress->on_all(std::move(progress->values));
      },
      [=](Failure failure) mutable {
        if (!std::exchange(progress->failed, true))
          progress->on_failure(std::move(failure));
      });
}

/// The obligation to reply to one message: a promise plus its arrow. Deliver
/// once, in a handler of the same actor (CAF promises are not thread-safe).
template <class Done>
class Reply {
public:
  Reply() = default;
  template <class SelfPointer>
  Reply(SelfPointer self, const Context& context)
    : promise_(self->template make_response_promise<Done>()),
      system_(&self->system()),
      track_(self->track()),
      context_(context) {}
  caf::typed_response_promise<Done> promise() const {
    return promise_;
  }
  void deliver(Done done) {
    mark(done);
    promise_.deliver(std::move(done));
  }
  void fail(const Failure& failure) {
    auto error = to_error(failure);
    mark(error);
    promise_.deliver(std::move(error));
  }

private:
  template <class T>
  void mark(const T& value) const {
    if (trace::enabled() && context_.flow != 0)
      trace::send(track_, trace::name("reply"), reply_flow(context_.flow),
                  context_.step.value, message_bytes(*system_, value));
  }

  caf::typed_response_promise<Done> promise_;
  caf::actor_system* system_ = nullptr;
  trace::Track track_{};
  Context context_;
};

} // namespace troupe::actors
