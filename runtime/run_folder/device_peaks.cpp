#include "runtime/run_folder/device_peaks.hpp"

#include "runtime/base/human_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::runtime {

std::string peak_text(const DevicePeak& peak) {
  return fmt::format("peak memory {} in {}",
                     bytes_text(static_cast<double>(peak.peak_bytes)),
                     peak.at_task);
}

void DevicePeaks::add(const actors::StepReport& report) {
  for (const auto& task : report.tasks)
    for (const auto& [device, bytes] : task.peak_bytes) {
      DevicePeak& peak = peaks_[device];
      if (bytes <= peak.peak_bytes)
        continue;
      const bool is_call = task.kind == plans::TaskKind::call;
      peak = {bytes, is_call ? task.call : task.name};
    }
}

std::uint64_t peak_bytes_of(const actors::StepReport& report) {
  std::uint64_t most = 0;
  for (const auto& task : report.tasks)
    for (const auto& [device, bytes] : task.peak_bytes)
      most = std::max(most, bytes);
  return most;
}

} // namespace troupe::runtime
