#include "runtime/run_folder/run_status.hpp"

#include "runtime/base/human_text.hpp"
#include "runtime/base/jsonl_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>

namespace troupe::runtime {

using Json = nlohmann::ordered_json;

namespace {

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

std::string text_of(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_string()
           ? object[key].get<std::string>()
           : std::string{};
}

} // namespace

bool is_under_way(const RunStatus& status) {
  return status.state == "starting" || status.state == "running"
         || status.state == "recovering" || status.state == "stopping";
}

std::string utc_now() {
  const std::time_t now
    = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string status_json(const RunStatus& status) {
  Json workers = Json::array();
  for (const auto& worker : status.workers)
    workers.push_back({{"rank", worker.rank},
                       {"host", worker.host},
                       {"pid", worker.pid},
                       {"state", worker.state}});
  Json devices = Json::array();
  for (const auto& device : status.devices)
    devices.push_back({{"device", device.device},
                       {"peak_bytes", device.peak.peak_bytes},
                       {"at_task", device.peak.at_task}});
  Json document = {
    {"state", status.state},
    {"step", status.step},
    {"steps", status.steps},
    {"attempt", status.attempt},
    {"eta_s", status.eta_s < 0 ? Json() : Json(status.eta_s)},
    {"workers", std::move(workers)},
    {"devices", std::move(devices)},
    {"last_failure", text_or_null(status.last_failure)},
    {"trace_url", text_or_null(status.trace_url)},
    {"host", status.host},
    {"pid", status.pid},
    {"updated", status.updated},
  };
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

void write_status(const RunFolder& folder, RunStatus status) {
  status.updated = utc_now();
  replace_file(folder.status_file(), status_json(status) + "\n");
}

RunStatus read_status(const RunFolder& folder) {
  if (!std::filesystem::exists(folder.status_file()))
    throw ConfigError({.place = {folder.root().string(), 0},
                       .path = "",
                       .expected = "a run folder",
                       .got = "no status.json in it",
                       .hint = "runs/NAME, the folder of a run"});
  try {
    const auto document = Json::parse(read_file(folder.status_file()));
    RunStatus status;
    status.state = document.at("state").get<std::string>();
    status.step = document.at("step").get<std::uint32_t>();
    status.steps = document.at("steps").get<std::uint32_t>();
    status.attempt = document.at("attempt").get<std::uint32_t>();
    if (document.at("eta_s").is_number())
      status.eta_s = document["eta_s"].get<double>();
    for (const auto& worker : document.at("workers"))
      status.workers.push_back({worker.at("rank").get<std::uint32_t>(),
                                worker.at("host").get<std::string>(),
                                worker.at("pid").get<std::int64_t>(),
                                worker.at("state").get<std::string>()});
    for (const auto& device : document.value("devices", Json::array()))
      status.devices.push_back({device.at("device").get<std::uint32_t>(),
                                {device.at("peak_bytes").get<std::uint64_t>(),
                                 device.at("at_task").get<std::string>()}});
    status.last_failure = text_of(document, "last_failure");
    status.trace_url = text_of(document, "trace_url");
    status.host = text_of(document, "host");
    status.pid = document.value("pid", std::int64_t{0});
    status.updated = text_of(document, "updated");
    return status;
  } catch (const Json::exception& error) {
    throw ConfigError({folder.status_file().string(), 0},
                      fmt::format("not a status file: {}", error.what()));
  }
}

std::string status_text(const RunFolder& folder, const RunStatus& status) {
  std::string text
    = fmt::format("{}: {}, step {} of {}, attempt {}\n", folder.name(),
                  status.state, status.step, status.steps, status.attempt);
  if (status.state == "running" && status.eta_s >= 0)
    text += fmt::format("  time left   {}\n", duration_text(status.eta_s));
  text += fmt::format("  master      pid {} on {}, updated {}\n", status.pid,
                      status.host, status.updated);
  for (const auto& worker : status.workers)
    text += fmt::format("  worker {:<4} pid {} on {}, {}\n", worker.rank,
                        worker.pid, worker.host, worker.state);
  for (const auto& device : status.devices)
    text += fmt::format("  device {:<4} {}\n", device.device,
                        peak_text(device.peak));
  if (!status.last_failure.empty())
    text += fmt::format("  failure     {}\n", status.last_failure);
  if (!status.trace_url.empty())
    text += fmt::format("  trace       {}\n", status.trace_url);
  return text;
}

} // namespace troupe::runtime
