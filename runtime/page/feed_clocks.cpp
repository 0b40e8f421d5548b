#include "runtime/page/feed_clocks.hpp"

#include "config/trace/trace_records.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

namespace troupe::runtime {

namespace {

using nlohmann::json;
using trace::RecordKind;

/// Limit of messages of which one end is unknown: 20 MB for a run whose
/// processes died.
constexpr std::size_t most_open_messages = std::size_t{1} << 18;

/// Returns the attempt in "worker_00_02.events"; 1: none is given.
std::uint32_t attempt_of(std::string_view name) {
  const auto digits = name.substr(name.rfind('_') + 1);
  std::uint32_t attempt = 1;
  std::from_chars(digits.data(), digits.data() + digits.size(), attempt);
  return attempt;
}

} // namespace

FeedClocks::FeedClocks() : aligner_(most_open_messages) {}

void FeedClocks::add(const std::string& trace, std::string_view records) {
  auto file = indices_.find(trace);
  trace::for_each_record(records, [&](RecordKind kind,
                                      std::string_view payload) {
    trace::ProcessRecord process{};
    if (kind == RecordKind::process && file == indices_.end()
        && payload.size() >= sizeof process) {
      std::memcpy(&process, payload.data(), sizeof process);
      file = indices_
               .emplace(trace, aligner_.add_file(
                                 {process.process_number, attempt_of(trace),
                                  process.realtime_ns - process.monotonic_ns}))
               .first;
      files_.emplace_back().name = trace;
    }
    if (kind == RecordKind::events && file != indices_.end())
      trace::for_each_event(payload, [&](const trace::Event& event) {
        aligner_.add_event(file->second, event);
      });
  });
}

std::string FeedClocks::changes(bool all_arrived) {
  json list = json::array();
  for (std::size_t i = 0; i < files_.size(); ++i) {
    auto& file = files_[i];
    const auto version = aligner_.version(i);
    if (std::exchange(file.version, version) == version)
      continue;
    const auto offset = aligner_.offset(i, all_arrived);
    const auto& add_ns = offset.add_ns;
    auto from = std::ranges::mismatch(add_ns, file.sent_add_ns).in1;
    if (from == add_ns.end() && offset.error_ns == file.sent_error_ns)
      continue;
    from = std::min(from, add_ns.end() - 1);
    for (; from != add_ns.end(); ++from)
      list.push_back({{"file", file.name},
                      {"from", offset.begin_of(static_cast<std::size_t>(
                                 from - add_ns.begin()))},
                      {"add", *from},
                      {"error", offset.error_ns}});
    file.sent_add_ns = add_ns;
    file.sent_error_ns = offset.error_ns;
  }
  return list.empty() ? "" : list.dump();
}

} // namespace troupe::runtime
