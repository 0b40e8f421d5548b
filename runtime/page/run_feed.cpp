#include "runtime/page/run_feed.hpp"

#include "runtime/page/step_lines.hpp"
#include "runtime/trace/run_graph.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace troupe::runtime {

namespace {

using nlohmann::json;

/// Limit per round: a finished run of gigabytes is sent in portions.
constexpr std::size_t portion_bytes = std::size_t{4} << 20;
constexpr std::size_t portion_of_lines = std::size_t{1} << 20;
/// Newest texts, of which the page has room for so many: samples hold all their
/// tokens.
constexpr std::uint64_t history_of_metrics = std::uint64_t{64} << 20;
constexpr std::uint64_t history_of_texts = std::uint64_t{4} << 20;
/// History of one worker's log; a run has many.
constexpr std::uint64_t history_of_a_worker = std::uint64_t{256} << 10;

} // namespace

RunFeed::RunFeed(RunFolder folder, std::vector<std::string> beside)
  : folder_(std::move(folder)),
    beside_(std::move(beside)),
    traces_(folder_),
    tokens_(folder_) {
  lines_.push_back({folder_.metrics_file(), "metrics", history_of_metrics, {}});
  lines_.push_back({folder_.failures_file(), "failures", history_of_texts, {}});
  lines_.push_back({folder_.samples_file(), "samples", history_of_texts, {}});
  lines_.push_back({folder_.log_file(), "log", history_of_texts, {}});
}

std::vector<FeedMessage> RunFeed::next() {
  if (!std::exchange(began_, true))
    add_beginning();
  if (traces_.begin(found_)) {
    loaded_ = false;
    to_load_ = 0;
  }
  find_files();
  if (!loaded_)
    to_load_ = std::max(to_load_, unread_bytes());
  traces_.read(portion_bytes, found_);
  for (auto& lines : lines_)
    if (lines.file)
      add_lines(lines);
  for (const auto step : std::exchange(samples_of_, {}))
    add_samples_of(step);
  add_status();
  if (!loaded_)
    add_loading();
  return std::exchange(found_, {});
}

/// Adds what does not change: the dataflow, the settings, other runs.
void RunFeed::add_beginning() {
  add_text("run", run_graph_json(folder_));
  std::ifstream file(folder_.config_file());
  if (const std::string settings{std::istreambuf_iterator<char>(file), {}};
      !settings.empty())
    add_text("settings", settings);
  if (!beside_.empty())
    add_text("beside", json(beside_).dump(-1, ' ', false,
                                          json::error_handler_t::replace));
}

void RunFeed::add_text(const std::string& type, const std::string& text) {
  found_.push_back(text_message(type, text));
}

/// Adds new lines; before samples the texts of their tokens.
void RunFeed::add_lines(Lines& lines) {
  const auto text = lines.file->read(portion_of_lines);
  if (text.empty())
    return;
  if (lines.type == "samples")
    if (const auto tokens = tokens_.next(text); !tokens.empty())
      add_text("tokens", tokens);
  add_text(lines.type, text);
}

/// Adds the samples of a step, even if there are none: the viewer waits.
void RunFeed::add_samples_of(std::uint32_t step) {
  const auto text
    = lines_of_step(folder_.samples_file(), step, history_of_texts);
  if (const auto tokens = tokens_.next(text); !tokens.empty())
    add_text("tokens", tokens);
  add_text("samples of " + std::to_string(step), text);
}

/// Finds new files before any is read, so that the amount to load is known.
void RunFeed::find_files() {
  traces_.find_files(found_);
  find_worker_logs();
  std::error_code none;
  for (auto& lines : lines_)
    if (!lines.file && std::filesystem::exists(lines.path, none))
      lines.file
        = std::make_unique<LineFollower>(lines.path, lines.history_bytes);
}

/// Finds logs of workers as they are started, or as they join from elsewhere.
void RunFeed::find_worker_logs() {
  std::error_code none;
  const auto logs = folder_.worker_log(WorkerId{0}).parent_path();
  std::filesystem::directory_iterator entry(logs, none);
  for (; !none && entry != std::filesystem::directory_iterator();
       entry.increment(none)) {
    const auto& file = entry->path();
    const auto worker = RunFolder::worker_of_log(file);
    if (!worker || !worker_logs_.insert(file.filename().string()).second)
      continue;
    lines_.push_back(
      {file, "log worker " + to_string(*worker), history_of_a_worker, {}});
  }
}

std::uint64_t RunFeed::unread_bytes() const {
  auto bytes = traces_.unread_bytes();
  for (const auto& lines : lines_)
    bytes += lines.file ? lines.file->unread_bytes() : 0;
  return bytes;
}

/// Adds how much of what existed was returned: until it has all, the page shows
/// only this share, since its picture of the run is incomplete.
void RunFeed::add_loading() {
  const auto unread = unread_bytes();
  loaded_ = unread == 0;
  const auto percent
    = loaded_ ? 100 : 100 - (100 * unread + to_load_ - 1) / to_load_;
  add_text("loading", std::to_string(percent));
}

/// Adds status.json, which is replaced as a whole and so compared as a whole.
void RunFeed::add_status() {
  std::ifstream file(folder_.status_file());
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text != std::exchange(status_, text))
    add_text("status", text);
}

} // namespace troupe::runtime
