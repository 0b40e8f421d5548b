#include "runtime/run_folder/device_peaks.hpp"

#include "runtime/base/human_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::runtime {

std::string peak_text(const DevicePeak& peak, std::uint64_t planned_bytes) {
  return fmt::format(
    "peak memory {} in {}{}", bytes_text(static_cast<double>(peak.peak_bytes)),
    peak.at_task,
    planned_bytes == 0
      ? ""
      : fmt::format(", {} planned",
                    bytes_text(static_cast<double>(planned_bytes))));
}

std::string planned_and_found(const std::vector<plans::DevicePeak>& planned,
                              const std::map<Rank, DevicePeak>& found) {
  const auto words
    = [](std::uint64_t bytes, Rank device, const std::string& task) {
        return fmt::format("{} on device {}{}{}",
                           bytes_text(static_cast<double>(bytes)), device.value,
                           task.empty() ? "" : ", in ", task);
      };
  std::string text = "the plan is not known";
  if (!planned.empty()) {
    const auto& most
      = *std::ranges::max_element(planned, {}, &plans::DevicePeak::peak_bytes);
    text = "the plan has at most "
           + words(most.peak_bytes, most.device, most.at_task);
  }
  if (found.empty())
    return text + "; no task has ended yet";
  const auto& [device, peak] = *std::ranges::max_element(
    found, {}, [](const auto& one) { return one.second.peak_bytes; });
  return text + "; the most so far was "
         + words(peak.peak_bytes, device, peak.at_task);
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
