#include "actors/protocol/ask.hpp"

#include "models/gpu/gpu_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

namespace troupe::actors {

namespace {

constexpr auto error_category = caf::atom("troupe");

bool is_work(const AskSpec& spec) {
  return spec.worker && spec.is_work;
}

} // namespace

// -- failures on the wire ----------------------------------------------------

caf::error to_error(const Failure& failure) {
  return {static_cast<std::uint8_t>(failure.code), error_category,
          caf::make_message(failure.who, failure.what, failure.cause)};
}

Failure to_failure(const caf::error& error, const std::string& waited_for) {
  const auto& context = error.context();
  if (error.category() == error_category
      && context.match_elements<std::string, std::string, std::string>())
    return {.code = static_cast<Errc>(error.code()),
            .who = context.get_as<std::string>(0),
            .what = context.get_as<std::string>(1),
            .cause = context.get_as<std::string>(2)};
  return {.code = Errc::peer_lost,
          .who = waited_for,
          .what = fmt::format("a message was not delivered ({} {})",
                              caf::to_string(error.category()), error.code()),
          .cause = ""};
}

FailureMessage to_failure_message(const Failure& failure) {
  return {static_cast<std::uint8_t>(failure.code), failure.who, failure.what,
          failure.cause};
}

Failure to_failure(const FailureMessage& message) {
  return {.code = static_cast<Errc>(message.code),
          .who = message.who,
          .what = message.what,
          .cause = message.cause};
}

Failure to_failure(const std::exception& error, const std::string& who) {
  if (const auto* known = dynamic_cast<const FailureError*>(&error)) {
    Failure failure = known->failure();
    if (failure.who.empty())
      failure.who = who;
    return failure;
  }
  if (auto full = models::out_of_memory_text(error); !full.empty())
    return {.code = Errc::out_of_memory,
            .who = who,
            .what = std::move(full),
            .cause = ""};
  Errc code = Errc::bug;
  if (dynamic_cast<const ConfigError*>(&error) != nullptr)
    code = Errc::bad_input;
  else if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    code = Errc::out_of_memory;
  return {.code = code, .who = who, .what = error.what(), .cause = ""};
}

// -- AskTable ----------------------------------------------------------------

void AskTable::add(std::uint64_t id, Owner owner, AskSpec spec) {
  const std::lock_guard lock{mutex_};
  if (closed_) {
    caf::anon_send(owner, fail_atom::value, id, to_failure_message(*closed_));
    return;
  }
  if (is_work(spec))
    last_work_[*spec.worker] = spec.name;
  entries_.emplace(id, Entry{std::move(owner), std::move(spec), Clock::now()});
}

void AskTable::remove(std::uint64_t id) {
  const std::lock_guard lock{mutex_};
  entries_.erase(id);
}

void AskTable::fail_all(const Failure& failure) {
  const std::lock_guard lock{mutex_};
  closed_ = failure;
  for (const auto& [id, entry] : entries_)
    caf::anon_send(entry.owner, fail_atom::value, id,
                   to_failure_message(failure));
  failed_.merge(entries_);
}

void AskTable::expire(Clock::time_point now) {
  const std::lock_guard lock{mutex_};
  std::erase_if(entries_, [&](const auto& item) {
    const auto& [id, entry] = item;
    if (entry.spec.deadline.count() == 0
        || now - entry.since < entry.spec.deadline)
      return false;
    const Failure failure{.code = Errc::deadline,
                          .who = entry.spec.name,
                          .what = fmt::format("no answer within {} ms",
                                              entry.spec.deadline.count()),
                          .cause = ""};
    caf::anon_send(entry.owner, fail_atom::value, id,
                   to_failure_message(failure));
    return true;
  });
}

std::vector<AskTable::Wait> AskTable::waits(Clock::time_point now) const {
  const std::lock_guard lock{mutex_};
  std::vector<Wait> waits;
  for (const auto& [id, entry] : entries_)
    waits.push_back({entry.spec.name, entry.spec.worker,
                     std::chrono::duration_cast<std::chrono::milliseconds>(
                       now - entry.since)});
  std::ranges::sort(
    waits, [](const Wait& a, const Wait& b) { return a.waited > b.waited; });
  return waits;
}

std::string AskTable::work_of(WorkerId worker) const {
  const std::lock_guard lock{mutex_};
  if (const auto told = told_.find(worker); told != told_.end())
    return told->second;
  const Entry* here = nullptr;
  const Entry* elsewhere = nullptr;
  for (const auto& [id, entry] : closed_ ? failed_ : entries_) {
    if (!is_work(entry.spec))
      continue;
    auto& newest = entry.spec.worker == worker ? here : elsewhere;
    if (newest == nullptr || newest->since < entry.since)
      newest = &entry;
  }
  if (const auto* open = here != nullptr ? here : elsewhere)
    return " during " + open->spec.name;
  const auto last = last_work_.find(worker);
  return last == last_work_.end() ? "" : " after " + last->second;
}

void AskTable::was_at(WorkerId worker, const std::string& work) {
  const std::lock_guard lock{mutex_};
  if (!work.empty())
    told_[worker] = work;
}

// -- Asks --------------------------------------------------------------------

void Asks::open(std::uint64_t id, AskTable::Owner owner, AskSpec spec,
                std::function<void(Failure)> on_failure) {
  pending_.emplace(id, std::move(on_failure));
  table_->add(id, std::move(owner), std::move(spec));
}

bool Asks::close(std::uint64_t id) {
  if (pending_.erase(id) == 0)
    return false;
  table_->remove(id);
  return true;
}

void Asks::fail(std::uint64_t id, const Failure& failure) {
  const auto found = pending_.find(id);
  if (found == pending_.end())
    return;
  const auto on_failure = std::move(found->second);
  pending_.erase(found);
  on_failure(failure);
}

} // namespace troupe::actors
