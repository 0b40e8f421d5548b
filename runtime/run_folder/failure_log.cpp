#include "runtime/run_folder/failure_log.hpp"

#include "runtime/base/jsonl_file.hpp"
#include "runtime/run_folder/run_status.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace troupe::runtime {

void append_failure(const RunFolder& folder, const FailureRecord& record) {
  using Json = nlohmann::ordered_json;
  Json line = {{"time", utc_now()},
               {"attempt", record.attempt},
               {"who", record.who},
               {"host", record.host.empty() ? host_name() : record.host},
               {"when", record.when},
               {"code", to_string(record.code)},
               {"what", record.what},
               {"cause", record.cause},
               {"action", record.action}};
  if (record.cost) {
    line["lost_steps"] = record.cost->lost_steps;
    line["seconds"] = record.cost->seconds;
  }
  JsonlFile(folder.failures_file())
    .append(line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void FailureLog::begin_recovery(FailureRecord record, Time now) {
  held_ = std::move(record);
  began_ = now;
}

void FailureLog::begin_wait(const FailureRecord& record,
                            const std::string& node, Time now) {
  awaited_ = {node, now};
  append_failure(folder_, record);
}

std::optional<std::pair<std::string, std::chrono::duration<double>>>
FailureLog::end_wait(Time now) {
  if (!awaited_)
    return std::nullopt;
  const auto [node, since] = *std::exchange(awaited_, std::nullopt);
  return std::pair(node, std::chrono::duration<double>(now - since));
}

void FailureLog::end_recovery(Time now) {
  if (!held_)
    return;
  auto record = *std::exchange(held_, std::nullopt);
  record.cost->seconds = std::chrono::duration<double>(now - began_).count();
  append_failure(folder_, record);
}

} // namespace troupe::runtime
