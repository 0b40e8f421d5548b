#include "runtime/commands/shared_files_check.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/defaults.hpp"
#include "config/base/random_hex.hpp"
#include "runtime/launch/launch_command.hpp"
#include "runtime/launch/run_program.hpp"
#include "runtime/launch/slurm_script.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <vector>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t probe_bytes = 8; ///< of its random name

std::vector<std::string>
hosts_that(SharedFilesReply wanted,
           const std::map<std::string, SharedFilesReply>& replies) {
  std::vector<std::string> hosts;
  for (const auto& [host, reply] : replies)
    if (reply == wanted)
      hosts.push_back(host);
  return hosts;
}

SharedFilesReply ask_host(const std::string& host, const fs::path& probe) {
  net::ChildSpec ssh;
  ssh.name = "probe of " + host;
  ssh.argv = {"ssh", "-o", "BatchMode=yes", host,
              "test -e " + shell_quoted(probe.string())};
  ssh.output_file = "/dev/null";
  const auto ended = run_program(std::move(ssh), defaults::connect_within);
  if (!ended || ended->signal != 0 || ended->code > 1) // ssh itself: 255
    return SharedFilesReply::none;
  return ended->code == 0 ? SharedFilesReply::shares
                          : SharedFilesReply::does_not;
}

} // namespace

DoctorCheck
shared_files_check(const Settings& settings,
                   const std::map<std::string, SharedFilesReply>& replies) {
  const auto& wanted = settings.cluster.shared_files;
  DoctorCheck check{.name = "shared files", .found = ""};
  if (wanted == "false" || replies.empty()) {
    check.found = wanted == "false"
                    ? "false: files go over the network"
                    : wanted + ": workers find out when they join";
    return check;
  }
  const auto silent = hosts_that(SharedFilesReply::none, replies);
  const auto apart = hosts_that(SharedFilesReply::does_not, replies);
  if (!silent.empty()) {
    check.found
      = fmt::format("no reply over ssh from {}", fmt::join(silent, ", "));
    check.fix = "make `ssh -o BatchMode=yes HOST true` work";
  } else if (apart.empty()) {
    check.found = "all hosts share " + settings.run.dir;
  } else {
    check.found = fmt::format("{} do not share {}: files go over the network",
                              fmt::join(apart, ", "), settings.run.dir);
    if (wanted == "true")
      check.fix = "cluster.shared_files=auto";
  }
  return check;
}

DoctorCheck examine_shared_files(const Settings& settings) {
  std::map<std::string, SharedFilesReply> replies;
  if (settings.cluster.launcher != "ssh"
      || settings.cluster.shared_files == "false")
    return shared_files_check(settings, replies);
  const auto probe = nearest_existing(settings.run.dir)
                     / (".troupe-probe-" + random_hex(probe_bytes));
  try {
    replace_file(probe, "");
  } catch (const FailureError& error) {
    return {"shared files", error.failure().what, "choose a writable run.dir"};
  }
  for (const auto& host : settings.cluster.hosts)
    replies[host] = ask_host(host, probe);
  std::error_code ignored;
  fs::remove(probe, ignored);
  return shared_files_check(settings, replies);
}

} // namespace troupe::runtime
