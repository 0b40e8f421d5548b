#include "models/servers/server_process.hpp"

#include "net/child_programs/child_log.hpp"

#include <csignal>

namespace troupe::models {

namespace {

/// vLLM 0.32 takes 2.8 s after SIGTERM; killed, it leaves up to 420 MB of
/// shared memory.
constexpr std::chrono::seconds server_ends_when_asked{5};

} // namespace

std::vector<std::string> command_argv(const std::string& command) {
  return {"/bin/sh", "-c", "exec " + command + R"( "$@")", "server"};
}

ServerProcess::ServerProcess(ServerProgram program)
  : program_(std::move(program)),
    pool_([this](const net::ChildExit& exit) {
      const std::lock_guard lock(mutex_);
      ended_ = exit; // only one runs at a time
      changed_.notify_all();
    }) {}

ServerProcess::~ServerProcess() {
  end();
}

void ServerProcess::start() {
  end();
  {
    const std::lock_guard lock(mutex_);
    ended_.reset();
  }
  log_begin_ = net::size_of_log(program_.log);
  group_ = pool_.start({.name = program_.name,
                        .argv = program_.argv,
                        .environment = program_.environment,
                        .output_file = program_.log,
                        .trust = net::Trust::users});
}

void ServerProcess::note_memory() {
  if (group_ > 0)
    memory_.note(group_);
}

void ServerProcess::end() {
  note_memory(); // of processes that live on after a killed one
  pool_.stop_all(server_ends_when_asked);
  memory_.remove();
  group_ = 0;
}

bool ServerProcess::wait_for_end(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return ended_.has_value(); });
}

std::string ServerProcess::end_text() const {
  const std::lock_guard lock(mutex_);
  if (!ended_)
    return "";
  const auto said = net::last_line_of(program_.log, log_begin_);
  return net::to_string(*ended_)
         + (said.empty() ? "" : "; its last line: " + said) + " ("
         + program_.log.string() + ")";
}

} // namespace troupe::models
