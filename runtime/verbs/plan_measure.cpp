#include "runtime/verbs/plan_measure.hpp"

#include "runtime/jsonl_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

/// Runs this program; stdout and stderr go to `log`. The exit status, or -1.
int run_self(const std::vector<std::string>& words, const fs::path& log) {
  std::vector<char*> arguments;
  for (const auto& word : words)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const auto failed = posix_spawn(&child, "/proc/self/exe", &actions, nullptr,
                                  arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failed != 0 || waitpid(child, &status, 0) != child)
    return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string last_line(const fs::path& file) {
  std::stringstream text(read_file(file));
  std::string last;
  for (std::string line; std::getline(text, line);)
    if (!line.empty())
      last = line;
  return last;
}

std::optional<double> median_step_s(const fs::path& metrics) {
  std::vector<double> seconds;
  std::stringstream text(read_file(metrics));
  for (std::string line; std::getline(text, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("timing_s/step"))
      seconds.push_back(json["timing_s/step"].get<double>());
  }
  if (seconds.size() > 1)
    seconds.erase(seconds.begin()); // warm-up
  if (seconds.empty())
    return std::nullopt;
  std::ranges::nth_element(
    seconds, seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2));
  return seconds[seconds.size() / 2];
}

} // namespace

MeasuredPlan measure_plan(const ConfigWords& config, const std::string& preset,
                          int steps) {
  auto folder = (fs::temp_directory_path() / "troupe-measure-XXXXXX").string();
  if (!mkdtemp(folder.data()))
    return {.step_s = {}, .why = "no temporary folder"};
  std::vector<std::string> words = {"troupe", "train"};
  for (const auto& list : {config.files(), config.overrides()})
    words.insert(words.end(), list.begin(), list.end());
  for (const auto& word :
       {"plan=" + preset, fmt::format("run.steps={}", steps + 1),
        "run.dir=" + folder, std::string("run.name=run"),
        std::string("run.save_every=0")})
    words.push_back(word);
  const auto log = fs::path(folder) / "log";
  MeasuredPlan measured;
  const auto metrics = fs::path(folder) / "run" / "metrics.jsonl";
  if (run_self(words, log) != 0)
    measured.why = last_line(log);
  else if (fs::exists(metrics))
    measured.step_s = median_step_s(metrics);
  if (!measured.step_s && measured.why.empty())
    measured.why = "the run wrote no metrics";
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return measured;
}

} // namespace troupe::runtime
