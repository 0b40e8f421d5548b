#include "runtime/commands/doctor.hpp"

#include "actors/worker_base/open_files.hpp"
#include "config/base/error.hpp"
#include "config/base/version.hpp"
#include "models/gpu/torch_info.hpp"
#include "models/kernels/gemm.hpp"
#include "net/base/gpus.hpp"
#include "net/base/open_files.hpp"
#include "net/collectives/nccl_library.hpp"
#include "runtime/base/host_memory.hpp"
#include "runtime/base/human_text.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/run_folder/run_status.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace troupe::runtime {

using Json = nlohmann::ordered_json;

namespace {

namespace fs = std::filesystem;

constexpr double doctor_gib = 1024.0 * 1024.0 * 1024.0;
/// Memory that the demo's four processes with libtorch need, about.
constexpr double enough_memory_bytes = 2 * doctor_gib;
/// Disk space for a few checkpoints of a small model and its logs.
constexpr double enough_disk_bytes = 1 * doctor_gib;
/// Shared memory through which gradients of the demo's models are exchanged.
constexpr double enough_shared_bytes = 0.0625 * doctor_gib;
constexpr std::uint64_t enough_open_files = 1024;

DoctorCheck check_versions() {
  return {"versions",
          fmt::format("{}, {}", version_text(), models::torch_info())};
}

DoctorCheck check_devices() {
  const auto cores = std::max(1u, std::thread::hardware_concurrency());
  return {"devices",
          fmt::format("{} CPU cores, {}; products by {} (fp32), {} (bf16)",
                      cores, models::cpu_info(), models::gemm_kernel_name(),
                      models::gemm_kernel_name(DType::bf16))};
}

/// Checks GPUs; finding none is no error, since the CPU is enough.
DoctorCheck check_gpus() {
  const auto gpus = net::find_gpus();
  if (gpus.names.empty())
    return {"gpus", "none: " + gpus.why_none};
  return {"gpus", fmt::format("{}; driver {}", fmt::join(gpus.names, ", "),
                              gpus.driver)};
}

/// Checks NCCL, without which GPUs exchange sums through the host.
DoctorCheck check_nccl() {
  const auto& nccl = net::NcclLibrary::machine();
  return {"nccl",
          nccl.why_not.empty() ? nccl.version() : "none: " + nccl.why_not};
}

DoctorCheck check_memory() {
  const auto total = static_cast<double>(host_memory_bytes());
  const auto available = static_cast<double>(available_memory_bytes());
  const bool ok = available == 0 || available >= enough_memory_bytes;
  return {
    "memory",
    fmt::format("{} available of {}", bytes_text(available), bytes_text(total)),
    ok ? "" : "end other programs: the demo needs about 2 GiB"};
}

DoctorCheck check_space(const std::string& name, const fs::path& path,
                        double enough, const std::string& fix) {
  std::error_code error;
  const auto space = fs::space(path, error);
  if (error)
    return {name, path.string() + ": " + error.message(), fix};
  const auto available = static_cast<double>(space.available);
  const bool ok = available >= enough;
  return {name,
          fmt::format("{} free in {}", bytes_text(available), path.string()),
          ok ? "" : fix};
}

DoctorCheck check_writing(const fs::path& folder) {
  const auto file = folder / fmt::format(".troupe_doctor_{}", ::getpid());
  try {
    replace_file(file, "written by troupe doctor");
  } catch (const FailureError& error) {
    return {"run folder", error.failure().what, "choose a writable run.dir"};
  }
  std::error_code ignored;
  fs::remove(file, ignored);
  return {"run folder", folder.string() + " is writable"};
}

/// Connects two sockets over loopback.
DoctorCheck check_ports() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  const bool ok
    = listener >= 0 && client >= 0 && ::bind(listener, raw, size) == 0
      && ::listen(listener, 1) == 0 && ::getsockname(listener, raw, &size) == 0
      && ::connect(client, raw, size) == 0;
  const int error = errno;
  ::close(client);
  ::close(listener);
  return {
    "ports",
    ok ? fmt::format("loopback works (tried port {})", ntohs(address.sin_port))
       : fmt::format("no TCP over 127.0.0.1: {}", std::strerror(error)),
    ok ? "" : "bring up the loopback interface, allow local sockets"};
}

DoctorCheck check_open_files() {
  const auto limit = net::open_file_limit();
  const bool ok = limit >= enough_open_files;
  return {"open files",
          fmt::format("limit {} of a process, enough for runs of {} workers",
                      limit, actors::workers_within(limit)),
          ok ? "" : fmt::format("ulimit -n {}", enough_open_files)};
}

/// Checks the clock; on one host it only dates log lines, so unsynchronised is
/// no error.
DoctorCheck check_clock() {
  timex state{};
  const bool synchronised = ::adjtimex(&state) != TIME_ERROR;
  return {"clock",
          fmt::format("{}, {}", utc_now(),
                      synchronised ? "synchronised"
                                   : "not synchronised (matters for runs over "
                                     "several hosts only)")};
}

} // namespace

fs::path nearest_existing(fs::path path) {
  path = fs::absolute(path).lexically_normal();
  std::error_code ignored;
  while (!fs::is_directory(path, ignored) && path.has_relative_path())
    path = path.parent_path();
  return path;
}

std::vector<DoctorCheck> examine_machine(const fs::path& run_dir) {
  const auto folder = nearest_existing(run_dir);
  return {
    check_versions(),
    check_devices(),
    check_gpus(),
    check_nccl(),
    check_memory(),
    check_space("shared memory", "/dev/shm", enough_shared_bytes,
                "enlarge /dev/shm (docker run --shm-size=1g)"),
    check_ports(),
    check_open_files(),
    check_clock(),
    check_space("disk", folder, enough_disk_bytes, "make room in run.dir"),
    check_writing(folder),
  };
}

DoctorCheck examine_moves(const MoveCheckPlan& plan) {
  const auto found = check_moves(plan);
  if (const auto* failure = std::get_if<Failure>(&found))
    return {"moves", to_string(*failure),
            "see the checks of ports, shared memory and memory above"};
  const auto& result = std::get<actors::MoveCheckResult>(found);
  const double seconds = result.took.count();
  return {
    "moves",
    fmt::format("{} moves of {} over {} devices and {} workers in {}, "
                "checksums equal: {}/s",
                result.moves,
                bytes_text(static_cast<double>(result.bytes) / result.moves),
                plan.devices, plan.workers, duration_text(seconds),
                bytes_text(static_cast<double>(result.bytes) / seconds))};
}

bool all_ok(const std::vector<DoctorCheck>& checks) {
  return std::all_of(checks.begin(), checks.end(),
                     [](const DoctorCheck& check) { return check.ok(); });
}

std::string doctor_json(const std::vector<DoctorCheck>& checks) {
  Json list = Json::array();
  for (const auto& check : checks)
    list.push_back({{"name", check.name},
                    {"ok", check.ok()},
                    {"found", check.found},
                    {"fix", check.fix}});
  return Json{{"ok", all_ok(checks)}, {"checks", std::move(list)}}.dump(
    2, ' ', false, Json::error_handler_t::replace);
}

std::string doctor_text(const std::vector<DoctorCheck>& checks) {
  std::string text;
  for (const auto& check : checks) {
    text += fmt::format("{:<4} {:<14} {}\n", check.ok() ? "ok" : "BAD",
                        check.name, check.found);
    if (!check.fix.empty())
      text += fmt::format("{:>19} fix: {}\n", "", check.fix);
  }
  text += all_ok(checks) ? "This machine is ready.\n"
                         : "Fix what is marked BAD, then run this again.\n";
  return text;
}

} // namespace troupe::runtime
