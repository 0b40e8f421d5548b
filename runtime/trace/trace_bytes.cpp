#include "runtime/trace/trace_bytes.hpp"

#include "actors/protocol/traced.hpp"

#include <algorithm>
#include <string>

namespace troupe::runtime {

namespace {

using ByteSpan = std::pair<std::int64_t, std::int64_t>;
using ByteSpans = std::map<TrackRef, std::vector<ByteSpan>>;
/// Devices by process and the number in their names.
using ByteDevices = std::map<std::pair<std::uint32_t, std::string>, TrackRef>;

ByteDevices byte_devices(const MergedTrace& trace) {
  ByteDevices devices;
  for (std::uint32_t p = 0; p < trace.processes.size(); ++p)
    for (std::uint32_t t = 0; t < trace.processes[p].tracks.size(); ++t)
      if (const auto& track = trace.processes[p].tracks[t]; is_device(track))
        devices[{p, track.name.substr(track.name.find(' ') + 1)}] = {p, t};
  return devices;
}

void add_row_spans(const MergedTrace& trace, const ByteDevices& devices,
                   ByteSpans& by_device) {
  std::map<std::uint64_t, const Arrow*> fetches; // by their replies' flow
  for (const auto& arrow : trace.arrows) {       // by the time of sending
    if (trace.name_of(arrow) == "fetch")
      fetches[actors::reply_flow(arrow.flow)] = &arrow;
    const auto fetch = fetches.extract(arrow.flow);
    if (!fetch)
      continue;
    const auto& to = fetch.mapped()->to;
    const auto& shard = trace.track_of(to.where).name; // shard actor@home/3
    const auto device
      = devices.find({to.where.process, shard.substr(shard.rfind('/') + 1)});
    if (device != devices.end())
      by_device[device->second].emplace_back(to.time_ns, arrow.from.time_ns);
  }
}

void add_move_spans(const MergedTrace& trace, const ByteDevices& devices,
                    ByteSpans& by_device) {
  for (const auto& slice : trace.slices) {
    if (slice.depth != 0 || trace.name_of(slice) != "move"
        || !is_device(trace.track_of(slice.where)))
      continue;
    for (const auto& [name, device] : devices)
      if (device.process == slice.where.process)
        by_device[device].emplace_back(slice.begin_ns, slice.end_ns);
  }
}

/// Sorts spans and joins those that touch.
void unite_spans(std::vector<ByteSpan>& spans) {
  std::ranges::sort(spans);
  std::size_t last = 0;
  for (const auto& span : spans)
    if (span.first > spans[last].second)
      spans[++last] = span;
    else
      spans[last].second = std::max(spans[last].second, span.second);
  spans.resize(last + 1);
}

} // namespace

bool is_device(const trace::TrackInfo& track) {
  return track.name.starts_with("device ");
}

BytesUnderWay::BytesUnderWay(const MergedTrace& trace) {
  const auto devices = byte_devices(trace);
  add_row_spans(trace, devices, by_device_);
  add_move_spans(trace, devices, by_device_);
  for (auto& [device, spans] : by_device_)
    unite_spans(spans);
}

std::int64_t BytesUnderWay::covered_ns(TrackRef device, std::int64_t begin_ns,
                                       std::int64_t end_ns) const {
  const auto found = by_device_.find(device);
  if (found == by_device_.end())
    return 0;
  std::int64_t sum_ns = 0;
  for (auto at = std::ranges::partition_point(
         found->second,
         [&](const auto& span) { return span.second <= begin_ns; });
       at != found->second.end() && at->first < end_ns; ++at)
    sum_ns += std::min(at->second, end_ns) - std::max(at->first, begin_ns);
  return sum_ns;
}

} // namespace troupe::runtime
