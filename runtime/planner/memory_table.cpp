#include "runtime/planner/memory_table.hpp"

#include "runtime/base/human_text.hpp"
#include "runtime/base/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::runtime {

namespace {

std::string snapshots_text(const plans::SnapshotBytes& snapshots) {
  if (snapshots.own == 0)
    return "";
  const auto text = [](std::uint64_t bytes) {
    return bytes_text(static_cast<double>(bytes));
  };
  const auto copies
    = snapshots.with_copies == snapshots.own
        ? ""
        : fmt::format(" ({} of it copies of another host's)",
                      text(snapshots.with_copies - snapshots.own));
  return fmt::format(
    "snapshots (run.snapshot_every): {} of a host's memory{}\n",
    text(snapshots.with_copies), copies);
}

std::string caches_text(const plans::ServerBytes& servers) {
  if (servers.on_device > 0)
    return fmt::format("servers' weights and caches: {} of each of their "
                       "devices\n",
                       bytes_text(static_cast<double>(servers.on_device)));
  if (servers.caches > 0)
    return fmt::format("servers' caches: {} of a host's memory\n",
                       bytes_text(static_cast<double>(servers.caches)));
  return "servers' caches: not known, they come on top\n";
}

std::string servers_text(const plans::ServerBytes& servers) {
  if (servers.of_model() == 0)
    return "";
  return fmt::format(
           "servers (rollout.engine): {} of a host's memory, {} of it "
           "while weights change\n",
           bytes_text(static_cast<double>(servers.of_model())),
           bytes_text(static_cast<double>(servers.updating)))
         + caches_text(servers);
}

std::string offloaded_text(std::uint64_t bytes) {
  return bytes == 0 ? ""
                    : fmt::format("offloaded planes: {} of a host's memory\n",
                                  bytes_text(static_cast<double>(bytes)));
}

} // namespace

std::string memory_table(const plans::PlanReport& report) {
  const bool differ = std::ranges::any_of(
    report.devices, [](const auto& device) { return !device.kind.empty(); });
  std::vector<std::string> columns
    = {"device", ">peak memory", ">of it resident", "at task"};
  if (differ)
    columns.insert(columns.begin() + 1, "kind");
  TextTable table(columns);
  for (const auto& device : report.devices) {
    std::vector<std::string> row
      = {to_string(device.device),
         bytes_text(static_cast<double>(device.peak_bytes)),
         bytes_text(static_cast<double>(device.resident_bytes)),
         device.at_task.empty() ? "-" : device.at_task};
    if (differ)
      row.insert(row.begin() + 1, device.kind);
    table.row(row);
  }
  return table.print() + rooms_text(report.rooms)
         + offloaded_text(report.offloaded_bytes)
         + snapshots_text(report.snapshots) + servers_text(report.servers);
}

std::string masks_text(const plans::MaskBytes& masks) {
  if (masks.all() == 0)
    return "";
  return fmt::format("sampling masks (algorithm.sampling_mask): up to {} of a "
                     "host's memory, {} of it while they are read\n",
                     bytes_text(static_cast<double>(masks.all())),
                     bytes_text(static_cast<double>(masks.read)));
}

std::string rooms_text(const plans::ResponseRooms& rooms) {
  std::string text;
  for (const auto& [call, room] : rooms)
    text += fmt::format(
      "{}: {} of {} answers at once on a rank{}, in a cache of {} a device\n",
      call, room.responses, room.all,
      room.sequences > room.responses
        ? fmt::format(", up to {} while they are short", room.sequences)
        : "",
      bytes_text(static_cast<double>(room.cache_bytes)));
  return text;
}

} // namespace troupe::runtime
