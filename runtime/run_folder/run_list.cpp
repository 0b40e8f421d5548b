#include "runtime/run_folder/run_list.hpp"

#include "config/base/did_you_mean.hpp"
#include "config/settings/settings_types.hpp"
#include "runtime/base/text_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace troupe::runtime {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

bool has_status(const RunFolder& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder.status_file(), ignored);
}

/// Returns the folders with a status.json.
std::vector<fs::path> folders_of_runs(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (has_status(RunFolder(entry.path())))
      found.push_back(entry.path());
  return found;
}

double age_of(const RunStatus& status) {
  std::tm parts{};
  if (::strptime(status.updated.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts)
      == nullptr)
    return -1;
  const auto then = std::chrono::system_clock::from_time_t(::timegm(&parts));
  const std::chrono::duration<double> age
    = std::chrono::system_clock::now() - then;
  return std::max(age.count(), 0.0);
}

std::string age_text(double seconds) {
  if (seconds < 0)
    return "?";
  if (seconds < 60)
    return fmt::format("{:.0f} s", seconds);
  if (seconds < 3600)
    return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600)
    return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / (24 * 3600));
}

} // namespace

fs::path default_runs_folder() {
  return RunSettings{}.dir;
}

RunStatus seen_status(const RunFolder& folder) {
  auto status = read_status(folder);
  if (is_under_way(status) && status.host == host_name()
      && !is_active(folder)) {
    status.state = "lost";
    status.eta_s = -1;
    for (auto& worker : status.workers)
      worker.state = "lost";
  }
  return status;
}

RunFolder find_run(const std::string& word) {
  const RunFolder here(word);
  const RunFolder named(default_runs_folder() / word);
  if (has_status(here) || here.exists())
    return here;
  if (has_status(named) || named.exists())
    return named;
  std::vector<std::string> names;
  for (const auto& folder : folders_of_runs(default_runs_folder()))
    names.push_back(folder.filename().string());
  const auto nearest = nearest_word(word, names);
  throw ConfigError(
    {.place = {word, 0},
     .path = "",
     .expected = "a run's name or folder",
     .got = fmt::format("no status.json in it or in {}", named.root().string()),
     .hint = nearest.empty() ? "`troupe status`, which lists the runs in "
                                 + default_runs_folder().string()
                             : "'" + nearest + "'"});
}

std::vector<ListedRun> list_runs(const fs::path& folder) {
  std::vector<ListedRun> runs;
  for (const auto& path : folders_of_runs(folder)) {
    const RunFolder run(path);
    try {
      const auto status = seen_status(run);
      runs.push_back({run, status, age_of(status)});
    } catch (const ConfigError&) { // a request by name reports what is broken
    }
  }
  std::ranges::sort(runs, [](const ListedRun& a, const ListedRun& b) {
    return a.age_s != b.age_s ? a.age_s < b.age_s
                              : a.folder.name() < b.folder.name();
  });
  return runs;
}

std::string runs_text(const std::vector<ListedRun>& runs) {
  TextTable table({"run", "state", ">step", ">age"});
  for (const auto& run : runs)
    table.row({run.folder.name(), run.status.state,
               fmt::format("{}/{}", run.status.step, run.status.steps),
               age_text(run.age_s)});
  return table.print();
}

std::string runs_json(const std::vector<ListedRun>& runs) {
  Json rows = Json::array();
  for (const auto& run : runs)
    rows.push_back({{"name", run.folder.name()},
                    {"folder", run.folder.root().string()},
                    {"state", run.status.state},
                    {"step", run.status.step},
                    {"steps", run.status.steps},
                    {"attempt", run.status.attempt},
                    {"updated", run.status.updated}});
  return Json{{"runs", std::move(rows)}}.dump(2, ' ', false,
                                              Json::error_handler_t::replace);
}

} // namespace troupe::runtime
