#include "models/rewards/rewarders.hpp"

#include "config/settings/settings.hpp"
#include "models/rewards/agent_reward.hpp"
#include "models/rewards/line_rewarder.hpp"
#include "models/rewards/python_reward.hpp"
#include "models/rewards/reward_rules.hpp"
#include "net/child_programs/http_lines.hpp"
#include "net/child_programs/line_programs.hpp"

namespace troupe::models {

namespace {

/// Outstanding lines per program: enough to keep it busy, and for programs that
/// answer out of order; Python programs answer one by one.
constexpr std::uint32_t window_of_programs = 8;
constexpr std::uint32_t window_of_python = 2;

void require_setting(const Settings& settings, const std::string& path,
                     const std::string& value, const std::string& expected) {
  if (value.empty())
    throw ConfigError({.place = place_of(settings, "reward.kind"),
                       .path = path,
                       .expected = expected,
                       .got = "nothing",
                       .hint = ""});
}

net::ReplyDeadline deadline_of(const RewardSettings& reward) {
  return {.silence = std::chrono::duration<double>(reward.timeout_s),
          .setting = "reward.timeout_s"};
}

net::LineProgramOptions
program_options(const RewardSettings& reward,
                const std::filesystem::path& run_folder) {
  net::LineProgramOptions options;
  options.name
    = "reward." + std::string(reward.kind == "python" ? "file" : "command");
  if (!run_folder.empty())
    options.log_folder = run_folder / "logs";
  options.workers = static_cast<std::uint32_t>(reward.workers);
  options.deadline = deadline_of(reward);
  if (reward.kind == "python") {
    options.argv = python_reward_command(reward.file, reward.function);
    options.ready_line = python_reward_ready;
    options.window = window_of_python;
  } else {
    options.argv = {"/bin/sh", "-c", reward.command};
    options.window = window_of_programs;
  }
  return options;
}

void check_file(const Settings& settings) {
  const auto& file = settings.reward.file;
  require_setting(settings, "reward.file", file,
                  "a Python file with compute_score");
  if (!std::filesystem::is_regular_file(file))
    throw ConfigError({.place = place_of(settings, "reward.file"),
                       .path = "reward.file",
                       .expected = "a Python file",
                       .got = "'" + file + "', which is no file",
                       .hint = ""});
}

/// Returns a Rewarder that queries `Lines` (programs or a server).
template <class Lines, class Options>
std::unique_ptr<Rewarder> ask_lines(Options options) {
  auto lines = std::make_shared<Lines>(std::move(options));
  return std::make_unique<LineRewarder>(
    [lines](const auto& source, const auto& handler, const auto* stop) {
      lines->run(source, handler, stop);
    });
}

std::unique_ptr<Rewarder> make_http_rewarder(const Settings& settings) {
  const auto& reward = settings.reward;
  require_setting(settings, "reward.url", reward.url,
                  "http://HOST:PORT/PATH of a server that answers JSON");
  net::HttpLineOptions options;
  options.name = "reward.url";
  options.url = parse_http_url(reward.url).value();
  options.workers = static_cast<std::uint32_t>(reward.workers);
  options.deadline = deadline_of(reward);
  return ask_lines<net::HttpLines>(std::move(options));
}

} // namespace

std::unique_ptr<Rewarder>
make_rewarder(const Settings& settings,
              const std::filesystem::path& run_folder) {
  const auto& reward = settings.reward;
  if (reward.kind == "agents")
    return std::make_unique<AgentRewarder>();
  if (reward.kind == "rule")
    return make_rule_rewarder(settings);
  if (reward.kind == "http")
    return make_http_rewarder(settings);
  if (reward.kind == "python")
    check_file(settings);
  else
    require_setting(settings, "reward.command", reward.command,
                    "a program that answers JSON lines");
  return ask_lines<net::LinePrograms>(program_options(reward, run_folder));
}

} // namespace troupe::models
