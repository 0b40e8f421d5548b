#include "config/base/error.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/trace/chrome_trace.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace troupe::runtime {

namespace {

using TraceJson = nlohmann::json;
using RowId = std::pair<std::int64_t, std::int64_t>; ///< pid, tid

constexpr std::size_t check_sentences = 10;

struct Span {
  std::int64_t begin_ns;
  std::int64_t end_ns;
};

struct Flow {
  std::vector<std::pair<RowId, std::int64_t>> starts;
  std::vector<std::pair<RowId, std::int64_t>> ends;
};

std::int64_t nanoseconds(const TraceJson& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

class ChromeChecker {
public:
  ChromeTraceCheck check(const TraceJson& document) {
    for (const auto& event : document.at("traceEvents"))
      take(event);
    for (auto& [row, spans] : rows_)
      check_nesting(row, spans);
    for (const auto& [id, flow] : flows_)
      check_flow(id, flow);
    return std::move(result_);
  }

private:
  void take(const TraceJson& event) {
    const auto phase = event.at("ph").get<std::string>();
    if (phase != "X" && phase != "s" && phase != "f")
      return;
    const RowId row{event.at("pid").get<std::int64_t>(),
                    event.at("tid").get<std::int64_t>()};
    const auto time_ns = nanoseconds(event.at("ts"));
    if (phase == "X")
      rows_[row].push_back({time_ns, time_ns + nanoseconds(event.at("dur"))});
    else if (phase == "s")
      flows_[event.at("id").dump()].starts.emplace_back(row, time_ns);
    else
      flows_[event.at("id").dump()].ends.emplace_back(row, time_ns);
  }

  void problem(std::string sentence) {
    ++result_.num_problems;
    if (result_.problems.size() < check_sentences)
      result_.problems.push_back(std::move(sentence));
  }

  /// Sorts by start, longest first, and keeps a stack of open ends.
  void check_nesting(const RowId& row, std::vector<Span>& spans) {
    result_.num_slices += spans.size();
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns
                                      : a.end_ns > b.end_ns;
    });
    std::vector<std::int64_t> open_ends;
    for (const auto& span : spans) {
      while (!open_ends.empty() && open_ends.back() <= span.begin_ns)
        open_ends.pop_back();
      if (!open_ends.empty() && open_ends.back() < span.end_ns)
        problem(fmt::format("track {}/{}: slice at {} ns overlaps another "
                            "without lying inside it",
                            row.first, row.second, span.begin_ns));
      open_ends.push_back(span.end_ns);
    }
  }

  void check_flow(const std::string& id, const Flow& flow) {
    if (flow.starts.size() != 1 || flow.ends.size() != 1) {
      problem(fmt::format("arrow {}: {} starts, {} ends", id,
                          flow.starts.size(), flow.ends.size()));
      return;
    }
    ++result_.num_arrows;
    const auto& [from, sent_ns] = flow.starts.front();
    const auto& [to, received_ns] = flow.ends.front();
    if (received_ns < sent_ns)
      problem(fmt::format("arrow {}: ends before it starts", id));
    if (!inside_a_slice(from, sent_ns))
      problem(fmt::format("arrow {}: its start is in no slice", id));
    if (!inside_a_slice(to, received_ns))
      problem(fmt::format("arrow {}: its end is in no slice", id));
  }

  /// check_nesting has sorted the spans: walks back from the last that begins
  /// in time; outer slices begin earlier, so stops only at depth 0.
  bool inside_a_slice(const RowId& row, std::int64_t time_ns) const {
    const auto found = rows_.find(row);
    if (found == rows_.end())
      return false;
    const auto& spans = found->second;
    auto after = std::upper_bound(
      spans.begin(), spans.end(), time_ns,
      [](std::int64_t time, const Span& span) { return time < span.begin_ns; });
    while (after != spans.begin())
      if ((--after)->end_ns >= time_ns)
        return true;
    return false;
  }

  std::map<RowId, std::vector<Span>> rows_;
  std::map<std::string, Flow> flows_;
  ChromeTraceCheck result_;
};

} // namespace

ChromeTraceCheck check_chrome_trace(const std::filesystem::path& path) {
  try {
    return ChromeChecker{}.check(TraceJson::parse(read_file(path)));
  } catch (const TraceJson::exception& error) {
    throw ConfigError({path.string(), 0},
                      fmt::format("not a Chrome trace: {}", error.what()));
  }
}

} // namespace troupe::runtime
