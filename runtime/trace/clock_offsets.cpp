#include "runtime/trace/clock_offsets.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace troupe::runtime {

namespace {

using trace::Event;
using trace::Kind;

constexpr std::int64_t span_ns = 10'000'000'000;
/// Limit of a trace's length, a year: a damaged time would cost its memory.
constexpr std::int64_t most_spans = 3'153'600;
/// Two processes whose clocks differ by less are taken to be on one host,
/// unless their messages contradict: its monotonic clock is exact, while the
/// real-time clock may have been stepped a little.
constexpr std::int64_t one_host_ns = 1'000'000'000;
constexpr auto far = std::numeric_limits<std::int64_t>::max() / 4;

} // namespace

std::int64_t ClockOffset::at(std::int64_t time_ns) const {
  const auto span
    = std::clamp<std::int64_t>((time_ns - begin_ns) / span_ns, 0,
                               static_cast<std::int64_t>(add_ns.size()) - 1);
  return add_ns[static_cast<std::size_t>(span)];
}

std::int64_t ClockOffset::begin_of(std::size_t i) const {
  return begin_ns + static_cast<std::int64_t>(i) * span_ns;
}

ClockAligner::Bounds::Bounds() : lowest(-far), highest(far) {}

bool ClockAligner::Bounds::known() const {
  return lowest > -far && highest < far;
}

ClockAligner::ClockAligner(std::size_t most_ends) : most_ends_(most_ends) {}

std::size_t ClockAligner::add_file(const ClockedProcess& process) {
  files_.emplace_back().process = process;
  auto& attempt = attempts_[process.attempt];
  if (process.number == files_.front().process.number && !attempt.has_master) {
    attempt.master = files_.size() - 1;
    attempt.has_master = true;
  }
  return files_.size() - 1;
}

void ClockAligner::add_event(std::size_t file, const Event& event) {
  auto& own = files_[file];
  if (!std::exchange(own.has_events, true))
    own.begin_ns = event.time_ns;
  if (event.kind != Kind::send && event.kind != Kind::receive)
    return;
  auto& attempt = attempts_[own.process.attempt];
  const End end{event.time_ns, file, event.kind == Kind::send};
  End other{};
  if (take_other(attempt.newer, event.flow, end.sent, other)
      || take_other(attempt.older, event.flow, end.sent, other)) {
    if (attempt.has_master && end.file != other.file) {
      if (other.file == attempt.master)
        add_bound(own, end, other);
      else if (end.file == attempt.master)
        add_bound(files_[other.file], other, end);
    }
    return;
  }
  attempt.newer[event.flow] = end;
  if (attempt.newer.size() > most_ends_ / 2)
    attempt.older = std::exchange(attempt.newer, {});
}

/// Removes the other end of a message, if it is known.
bool ClockAligner::take_other(Ends& ends, std::uint64_t flow, bool sent,
                              End& found) {
  const auto other = ends.find(flow);
  if (other == ends.end() || other->second.sent == sent)
    return false;
  found = other->second;
  ends.erase(other);
  return true;
}

void ClockAligner::add_bound(File& file, const End& own, const End& masters) {
  const auto span
    = std::max<std::int64_t>(0, (own.time_ns - file.begin_ns) / span_ns);
  if (span >= most_spans)
    return;
  const auto at = static_cast<std::size_t>(span);
  file.spans.resize(std::max(file.spans.size(), at + 1));
  auto& bounds = file.spans[at];
  const auto apart = own.time_ns - masters.time_ns;
  if (own.sent)
    bounds.lowest = std::max(bounds.lowest, apart);
  else
    bounds.highest = std::min(bounds.highest, apart);
  file.any_known |= bounds.known();
  file.contradicts |= bounds.lowest > 0 || bounds.highest < 0;
}

const ClockAligner::File& ClockAligner::master_of(const File& file) const {
  const auto& attempt = attempts_.at(file.process.attempt);
  return attempt.has_master ? files_[attempt.master] : files_.front();
}

/// Returns the offset by the real-time clocks at the start of both.
std::int64_t ClockAligner::realtime_add_ns(const File& file,
                                           const File& reference) const {
  return file.process.realtime_less_monotonic_ns
         - reference.process.realtime_less_monotonic_ns;
}

bool ClockAligner::is_one_host(const File& file) const {
  return std::abs(realtime_add_ns(file, master_of(file))) < one_host_ns
         && !file.contradicts;
}

/// Returns what is added to the times of the attempt's master.
std::int64_t ClockAligner::master_add_ns(const File& file) const {
  const auto& master = master_of(file);
  const auto add_ns = realtime_add_ns(master, files_.front());
  return std::abs(add_ns) < one_host_ns ? 0 : add_ns;
}

ClockOffset ClockAligner::offset(std::size_t index, bool all_arrived) const {
  const auto& file = files_[index];
  const auto& master = master_of(file);
  const auto base_ns = master_add_ns(file);
  ClockOffset offset{file.begin_ns, {}, 0};
  if (&file == &master || is_one_host(file)) {
    offset.add_ns = {base_ns};
    offset.error_ns = base_ns != 0 && &file == &master ? -1 : 0;
    return offset;
  }
  offset.error_ns = -1;
  auto known = std::ranges::find_if(file.spans, &Bounds::known);
  for (auto span = file.spans.begin();
       known != file.spans.end() && span != file.spans.end(); ++span) {
    const bool settled = all_arrived || span + 1 != file.spans.end();
    if (span->known() && settled)
      known = span;
    const auto wide = known->highest - known->lowest;
    offset.add_ns.push_back(base_ns - known->lowest - wide / 2);
    offset.error_ns = std::max(offset.error_ns, (std::abs(wide) + 1) / 2);
  }
  if (offset.add_ns.empty())
    offset.add_ns = {base_ns + realtime_add_ns(file, master)};
  return offset;
}

std::uint64_t ClockAligner::version(std::size_t index) const {
  const auto& file = files_[index];
  const auto& attempt = attempts_.at(file.process.attempt);
  return 1 + (attempt.has_master ? 1 : 0) + (file.any_known ? 2 : 0)
         + (file.contradicts ? 4 : 0) + 8 * file.spans.size();
}

std::vector<ClockOffset>
clock_offsets(const std::vector<trace::TraceFile>& files) {
  ClockAligner aligner;
  std::map<std::uint32_t, std::uint32_t> attempts; // per number so far
  std::uint32_t last_attempt = 0; // that has a file of the first process
  for (const auto& file : files)
    if (file.process_number == files.front().process_number)
      ++last_attempt;
  for (const auto& file : files)
    aligner.add_file(
      {.number = file.process_number,
       .attempt = std::min(attempts[file.process_number]++, last_attempt - 1),
       .realtime_less_monotonic_ns
       = file.start_realtime_ns - file.start_monotonic_ns});
  for (std::size_t i = 0; i < files.size(); ++i)
    for (const auto& event : files[i].events)
      aligner.add_event(i, event);
  std::vector<ClockOffset> offsets;
  for (std::size_t i = 0; i < files.size(); ++i)
    offsets.push_back(aligner.offset(i, true));
  return offsets;
}

} // namespace troupe::runtime
