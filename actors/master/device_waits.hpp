// Waits of idle devices, as slices of the trace: one track per device, beside
// the one on which it works, with "waits for actor_gen (data)" from the moment
// at which the schedule reports it. So every gap between two tasks of a device
// is explained (I7). The slice's step is that of the task that is waited for.
#pragma once

#include "config/base/ids.hpp"
#include "config/trace/trace.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

class DeviceWaits {
public:
  /// Begins a wait of `device` for `what`; changes nothing if it waits for that
  /// already.
  void wait(Rank device, std::string_view what, StepId step) {
    if (!trace::enabled())
      return;
    const auto track = "waits of device " + std::to_string(device.value);
    const Slice slice{trace::track(track, trace::TrackKind::actor),
                      trace::name("waits for " + std::string(what)), step};
    const auto found = open_.find(device);
    if (found != open_.end() && found->second == slice)
      return;
    end(device);
    trace::begin(slice.track, slice.name, slice.step.value);
    open_.emplace(device, slice);
  }
  /// Ends the wait of `device`.
  void end(Rank device) {
    const auto found = open_.extract(device);
    if (found)
      trace::end(found.mapped().track, found.mapped().name);
  }
  void end(const std::vector<Rank>& devices) {
    for (const auto device : devices)
      end(device);
  }
  void end_all() {
    while (!open_.empty())
      end(open_.begin()->first);
  }

private:
  struct Slice {
    trace::Track track;
    trace::Name name;
    StepId step;
    bool operator==(const Slice&) const = default;
  };
  std::map<Rank, Slice> open_;
};

} // namespace troupe::actors
