#include "config/trace/trace_segments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <system_error>

namespace troupe::trace {

namespace {

constexpr std::string_view trace_extension = ".events";

/// A segment and the name of its trace's first file: "master_01.events" for
/// "master_01.000002.events".
struct NamedSegment {
  std::string name;
  Segment segment;
};

NamedSegment segment_of(const std::filesystem::path& path) {
  const auto stem = path.stem();
  const auto digits = stem.extension().string(); // ".000002", or none
  std::uint32_t number = 0;
  const auto* end = digits.data() + digits.size();
  if (digits.size() < 2
      || std::from_chars(digits.data() + 1, end, number).ptr != end)
    return {path.filename(), {path, 1}};
  return {stem.stem().string() + std::string(trace_extension), {path, number}};
}

} // namespace

std::filesystem::path segment_path(const std::filesystem::path& first,
                                   std::uint32_t number) {
  if (number == 1)
    return first;
  return first.parent_path()
         / fmt::format("{}.{:06}{}", first.stem().string(), number,
                       trace_extension);
}

std::vector<SegmentedTrace> list_traces(const std::filesystem::path& folder) {
  std::map<std::string, std::vector<Segment>> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == trace_extension) {
      auto named = segment_of(entry.path());
      found[named.name].push_back(std::move(named.segment));
    }
  std::vector<SegmentedTrace> traces;
  for (auto& [name, segments] : found) {
    std::ranges::sort(segments, {}, &Segment::number);
    traces.push_back({name, std::move(segments)});
  }
  return traces;
}

void remove_trace(const std::filesystem::path& first) {
  std::error_code ignored;
  for (const auto& trace : list_traces(first.parent_path()))
    if (trace.name == first.filename())
      for (const auto& segment : trace.segments)
        std::filesystem::remove(segment.path, ignored);
}

} // namespace troupe::trace
