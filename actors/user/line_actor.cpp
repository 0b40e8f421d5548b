// The child processes of user-defined actors (troupe/process_pool.hpp): each
// has an actor with a thread of its own, which waits for it.
#include "config/base/error.hpp"
#include "net/child_programs/line_programs.hpp"

#include "troupe/process_pool.hpp"

namespace troupe::detail {

namespace {

struct LineState {
  static constexpr const char* name = "process";
  std::shared_ptr<net::LinePrograms> program;
};

caf::error failed(const std::string& what) {
  return caf::make_error(caf::sec::runtime_error, what);
}

/// Sends a line to the program; its next line is the reply.
caf::result<std::string> reply_of(net::LinePrograms& program,
                                  const std::string& command,
                                  const std::string& line) {
  std::string said;
  std::string error;
  net::LineHandler handler;
  handler.line_of = [](std::string_view) { return std::optional(0UL); };
  handler.on_reply = [&](std::size_t, std::string_view reply) { said = reply; };
  handler.on_unmatched = [](std::string_view) {};
  handler.on_loss
    = [&](std::size_t, net::LineLoss, const std::string& why) { error = why; };
  try {
    program.run(std::vector{line}, handler, nullptr);
  } catch (const FailureError& failure) {
    return failed(failure.what());
  }
  if (!error.empty())
    return failed(command + ": " + error);
  return said;
}

LineActor::behavior_type line_actor(LineActor::stateful_pointer<LineState> self,
                                    const std::string& command,
                                    std::chrono::milliseconds deadline) {
  self->state.program
    = std::make_shared<net::LinePrograms>(net::LineProgramOptions{
      .name = command,
      .argv = {"/bin/sh", "-c", "exec " + command},
      .log_folder = {},
      .deadline = {.silence = deadline, .setting = "deadline"},
      .ready_line = {},
    });
  return {[=](line_atom, const std::string& line) {
    return reply_of(*self->state.program, command, line);
  }};
}

} // namespace

LineActor spawn_line_actor(caf::actor_system& system,
                           const std::string& command,
                           std::chrono::milliseconds deadline) {
  return system.spawn<caf::detached>(line_actor, command, deadline);
}

} // namespace troupe::detail
