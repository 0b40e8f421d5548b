#include "models/generate/admission.hpp"

#include <algorithm>

namespace troupe::models::internal {

namespace {

/// Takes a sequence out of the cache.
void evict(KvCache& cache, Sequence& s) {
  cache.free_slot(s.slot);
  s.slot = -1;
  s.fed = 0;
}

std::int64_t pages_held(const KvCache& cache, const Sequence& s) {
  return s.slot < 0
           ? 0
           : static_cast<std::int64_t>(cache.pages().pages(s.slot).size());
}

} // namespace

void Admission::admit(KvCache& cache, const OnEnded& on_ended) {
  std::int64_t wanted = waiting.empty() ? 0 : pages_wanted(cache);
  while (!waiting.empty()) {
    Sequence* next = waiting.front();
    if (next->finished()) { // no room for a response
      waiting.pop_front();
      on_ended(*next);
      continue;
    }
    wanted += pages_wanted(cache, *next);
    if (!give_slot(cache, *next, wanted))
      break;
    waiting.pop_front();
    active.push_back(next);
  }
  for (Sequence* s : active)
    if (s->fed == 0)
      share_prefix(cache, *s);
  give_pages(cache);
}

/// Assigns its own slot, or a free one, and evicts kept sequences until there
/// is one and the wanted pages are free. Returns false if there are too many
/// active ones.
bool Admission::give_slot(KvCache& cache, Sequence& s, std::int64_t wanted) {
  const auto fits = [&] {
    const auto slots = static_cast<std::int64_t>(active.size() + kept.size());
    return (s.slot >= 0 || slots < cache.pages().slots_of(pool))
           && wanted <= cache.pages().free_pages(pool);
  };
  while (!fits()) {
    Sequence* evicted = least_wanted(&s);
    if (evicted == nullptr)
      return false;
    std::erase(kept, evicted);
    evict(cache, *evicted);
  }
  if (std::erase(kept, &s) == 0)
    s.slot = cache.take_slot(pool);
  return true;
}

std::int64_t Admission::pages_wanted(const KvCache& cache) const {
  std::int64_t pages = 0;
  for (const Sequence* s : active)
    pages += pages_wanted(cache, *s);
  return pages;
}

/// Returns the pages that a sequence will take for its tokens and a page's
/// worth of new ones: else those that grow would soon preempt those that have
/// just begun.
std::int64_t Admission::pages_wanted(const KvCache& cache,
                                     const Sequence& s) const {
  const CacheRoom& room = cache.room();
  const std::int64_t held = pages_held(cache, s);
  const std::int64_t pages
    = room.pages_of(std::min(s.size() + room.page_tokens, s.limits.turn));
  const auto is_of_group
    = [&](const Sequence* other) { return other->group == s.group; };
  const bool will_share
    = held == 0 && std::ranges::any_of(active, [&](const Sequence* other) {
        return other != &s && is_of_group(other);
      });
  const std::int64_t shared
    = will_share ? (s.num_prompt - 1) / room.page_tokens : 0;
  return std::max<std::int64_t>(0, pages - held - shared);
}

bool Admission::has_pages(const KvCache& cache) const {
  std::int64_t missing = 0;
  for (const Sequence* s : active)
    if (!s->finished() && !waits_for_prefix(*s))
      missing += cache.pages().missing_pages(s->slot, s->fed, s->size());
  return missing <= cache.pages().free_pages(pool);
}

bool Admission::waits_for_prefix(const Sequence& s) const {
  if (s.fed > 0 || s.num_prompt == 1)
    return false;
  for (const Sequence* other : active) {
    if (other == &s)
      return false;
    if (other->group == s.group)
      return true;
  }
  return false;
}

/// Gives a sequence the prompt that another one already has in the cache,
/// except for its last token, whose logits this sequence needs itself.
void Admission::share_prefix(KvCache& cache, Sequence& s) const {
  const std::int64_t shared = s.num_prompt - 1;
  if (shared == 0)
    return;
  for (const auto* holders : {&active, &kept})
    for (const Sequence* other : *holders)
      if (other->group == s.group && other->fed >= shared) {
        cache.share_prefix(other->slot, s.slot, shared);
        s.fed = shared;
        return;
      }
}

void Admission::give_pages(KvCache& cache) {
  for (std::size_t i = 0; i < active.size(); ++i) {
    Sequence& s = *active[i];
    if (s.finished() || waits_for_prefix(s)) // a last token is not fed
      continue;
    while (s.slot >= 0 && !cache.make_room(s.slot, s.fed, s.size()))
      preempt(cache);
  }
}

/// Frees the pages of the sequence that can spare them best.
void Admission::preempt(KvCache& cache) {
  if (Sequence* idle = least_wanted(nullptr)) {
    std::erase(kept, idle);
    return evict(cache, *idle);
  }
  Sequence* youngest = active.back();
  active.pop_back();
  evict(cache, *youngest);
  waiting.push_front(youngest);
}

Sequence* Admission::least_wanted(const Sequence* s) const {
  Sequence* last = nullptr;
  for (Sequence* other : kept) {
    if (other == s)
      continue;
    if (std::ranges::find(waiting, other) == waiting.end())
      return other;
    last = other;
  }
  return last;
}

} // namespace troupe::models::internal
