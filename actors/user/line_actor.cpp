#include "actors/user/line_actor.hpp"

#include "config/base/error.hpp"

namespace troupe::detail {

namespace {

struct LineState {
  static constexpr const char* name = "process";
  std::shared_ptr<net::LinePrograms> program;
  std::shared_ptr<const std::atomic<bool>> stop;
};

caf::error failed(const std::string& what) {
  return caf::make_error(caf::sec::runtime_error, what);
}

/// Sends a line to the program; its next line is the reply.
caf::result<std::string> reply_of(const LineState& state,
                                  const std::string& name,
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
    state.program->run(std::vector{line}, handler, state.stop.get());
  } catch (const FailureError& failure) {
    return failed(failure.what());
  }
  if (!error.empty())
    return failed(name + ": " + error);
  return said;
}

LineActor::behavior_type
line_actor(LineActor::stateful_pointer<LineState> self,
           const net::LineProgramOptions& options,
           const std::shared_ptr<const std::atomic<bool>>& stop) {
  self->state.program = std::make_shared<net::LinePrograms>(options);
  self->state.stop = stop;
  return {[self, name = options.name](line_atom, const std::string& line) {
    return reply_of(self->state, name, line);
  }};
}

} // namespace

LineActor spawn_line_actor(caf::actor_system& system,
                           net::LineProgramOptions options,
                           std::shared_ptr<const std::atomic<bool>> stop) {
  return system.spawn<caf::detached>(line_actor, std::move(options),
                                     std::move(stop));
}

LineActor spawn_line_actor(caf::actor_system& system,
                           const std::string& command,
                           std::chrono::milliseconds deadline) {
  return spawn_line_actor(
    system,
    net::LineProgramOptions{
      .name = command,
      .argv = {"/bin/sh", "-c", "exec " + command},
      .log_folder = {},
      .deadline = {.silence = deadline, .setting = "deadline"},
      .ready_line = {},
    },
    nullptr);
}

} // namespace troupe::detail
