// Replies that wait for work outside their actor: on a device thread or the I/O
// thread. That work gets a callback that may be called from any thread, once;
// the reply itself is delivered in a handler of the actor (CAF 0.17 promises
// are not thread-safe).
#pragma once

#include "actors/protocol/ask.hpp"
#include "actors/protocol/job_thread.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

namespace troupe::actors {

template <class Done>
using Result = std::variant<Done, Failure>;

class OpenReplies {
public:
  /// Returns a callback that takes the result; then, in a handler of `self`,
  /// `on_value` (if any) sees it before it is delivered.
  template <class SelfPointer, class Done>
  std::function<void(Result<Done>)> open(SelfPointer self, Reply<Done> reply,
                                         std::function<void(Done&)> on_value
                                         = {}) {
    const auto id = ++last_id_;
    auto slot = std::make_shared<std::optional<Result<Done>>>();
    finishers_[id] = [reply, slot, on_value = std::move(on_value)]() mutable {
      if (auto* failure = std::get_if<Failure>(&**slot))
        return reply.fail(*failure);
      Done& done = std::get<Done>(**slot);
      if (on_value)
        on_value(done);
      reply.deliver(std::move(done));
    };
    const caf::typed_actor<job_done> owner{self};
    return [owner, slot, id](Result<Done> result) {
      *slot = std::move(result);
      caf::anon_send(owner, done_atom::value, id);
    };
  }

  /// Handles `done_atom`.
  void finish(std::uint64_t id) {
    const auto found = finishers_.find(id);
    if (found == finishers_.end())
      return;
    auto finisher = std::move(found->second);
    finishers_.erase(found);
    finisher();
  }

private:
  std::unordered_map<std::uint64_t, std::function<void()>> finishers_;
  std::uint64_t last_id_ = 0;
};

/// Returns the result of `work`, or what it throws as a failure of `who`.
template <class Done, class Work>
Result<Done> result_of(const std::string& who, Work work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return to_failure(error, who);
  }
}

/// Runs `work` on `device` and passes its result to `callback`.
template <class Done, class Work>
void run_job(JobThread& device, std::string who,
             std::function<void(Result<Done>)> callback, Work work) {
  device.post([who = std::move(who), callback = std::move(callback),
               work = std::move(work)]() mutable {
    callback(result_of<Done>(who, std::move(work)));
  });
}

} // namespace troupe::actors
