#include "plans/recovery/recovery.hpp"

#include "config/base/defaults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

namespace troupe::plans {

namespace {

/// Returns whether another attempt may end otherwise.
bool may_pass(const Failure& failure) {
  return failure.code == Errc::peer_lost || failure.code == Errc::deadline;
}

/// Returns whether a worker could not even begin: a program that is not found,
/// a library that is missing, a host that refuses.
bool cannot_start(std::span<const FailedAttempt> attempts) {
  return attempts.size() == 1 && !attempts[0].started && !attempts[0].killed;
}

/// Returns whether the same step ended the same worker in two attempts in a
/// row, in the same way. What it was doing is not compared: which of its calls
/// is named depends on the moment.
bool is_poisoned(const FailedAttempt& before, const FailedAttempt& now) {
  return now.started && now.worker && before.started
         && before.worker == now.worker && before.step == now.step
         && before.killed == now.killed
         && before.failure.code == now.failure.code;
}

/// Returns the number of attempts, the last included, that ended with the
/// checkpoint that is still the newest; those that waited for a node do not
/// count.
std::size_t attempts_without_checkpoint(std::span<const FailedAttempt> attempts,
                                        const RecoveryRules& rules) {
  const auto saved = attempts.back().saved;
  std::size_t count = 0;
  for (const auto& attempt : attempts | std::views::reverse) {
    if (attempt.saved != saved)
      break;
    const bool waited
      = attempt.absent_node && rules.lost_node == LostNode::wait;
    count += waited ? 0 : 1;
  }
  return count;
}

/// Returns the time to wait for a node: twice as long after each attempt
/// without one, since all other workers are started for it.
std::chrono::seconds wait_for_node(std::span<const FailedAttempt> attempts) {
  auto wait = defaults::first_wait_for_node;
  for (const auto& attempt :
       attempts | std::views::take(attempts.size() - 1) | std::views::reverse) {
    if (!attempt.absent_node || wait >= defaults::longest_wait_for_node)
      break;
    wait = std::min(2 * wait, defaults::longest_wait_for_node);
  }
  return wait;
}

/// Returns what to do without the node that did not come back; nothing if that
/// is an ordinary failure.
std::optional<RecoveryDecision>
without_lost_node(std::span<const FailedAttempt> attempts,
                  const RecoveryRules& rules) {
  const auto& now = attempts.back();
  if (attempts.size() < 2 || !now.absent_node)
    return std::nullopt;
  if (rules.lost_node == LostNode::wait)
    return RecoveryDecision{.recovers = true, .wait = wait_for_node(attempts)};
  if (rules.lost_node == LostNode::shrink && rules.nodes > 1)
    return RecoveryDecision{.recovers = true, .without_node = now.absent_node};
  return std::nullopt;
}

} // namespace

RecoveryDecision decide_recovery(std::span<const FailedAttempt> attempts,
                                 const RecoveryRules& rules) {
  const auto& now = attempts.back();
  if (rules.max_restarts > 0 && now.lost_snapshot)
    return {.recovers = true};
  if (rules.max_restarts == 0 || !may_pass(now.failure)
      || cannot_start(attempts))
    return {};
  if (const auto decision = without_lost_node(attempts, rules))
    return *decision;
  if (attempts.size() > 1 && is_poisoned(attempts[attempts.size() - 2], now))
    return {.reason
            = fmt::format("step {1} ended worker {0} twice; before: {2}",
                          now.worker->value, now.step.value + 1,
                          to_string(attempts[attempts.size() - 2].failure))};
  const auto failed = attempts_without_checkpoint(attempts, rules);
  if (failed > rules.max_restarts)
    return {.reason = fmt::format("gave up after {} restarts without a newer "
                                  "checkpoint (cluster.max_restarts)",
                                  rules.max_restarts)};
  return {.recovers = true};
}

} // namespace troupe::plans
