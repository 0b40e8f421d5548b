// Which sequences of a lane are in the KV cache. Those that have waited longest
// are admitted while slots and pages are free; a sequence takes pages as it
// grows. If pages run out, first the sequences between turns lose theirs, then
// the youngest running one is preempted: it waits again, in front, and its
// tokens are fed once more. So the oldest one always runs on, and a lane admits
// by the tokens that there are, not by those that might come.
#pragma once

#include "models/generate/sequences.hpp"
#include "models/kernels/kv_cache.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace troupe::models::internal {

/// Called when a sequence's turn has ended.
using OnEnded = std::function<void(const Sequence&)>;

struct Admission {
  std::deque<Sequence*> waiting;
  std::vector<Sequence*> active; ///< with a slot, in order of admission
  std::vector<Sequence*> kept;   ///< with a slot, between turns, oldest first
  std::int64_t pool = 0;         ///< of the cache

  /// Admits sequences, after which all active ones that `waits_for_prefix` does
  /// not hold back have room for all their tokens. Those of a prompt that is in
  /// the cache share it.
  void admit(KvCache& cache, const OnEnded& on_ended);
  /// Returns true if `admit` preempts none of the active sequences.
  bool has_pages(const KvCache& cache) const;
  /// Returns true if an earlier active sequence is about to prefill the same
  /// prompt.
  bool waits_for_prefix(const Sequence& s) const;

private:
  bool give_slot(KvCache& cache, Sequence& s, std::int64_t wanted);
  /// Returns the pages that the active sequences will take next.
  std::int64_t pages_wanted(const KvCache& cache) const;
  std::int64_t pages_wanted(const KvCache& cache, const Sequence& s) const;
  void share_prefix(KvCache& cache, Sequence& s) const;
  void give_pages(KvCache& cache);
  void preempt(KvCache& cache);
  /// Returns the first kept sequence other than `s` without a requested turn,
  /// else the last one: its turn is the farthest; null: there is none.
  Sequence* least_wanted(const Sequence* s) const;
};

} // namespace troupe::models::internal
