// The child processes of own actors (troupe/process_pool.hpp): each has an
// actor with a thread of its own, which waits for it.
#include "config/error.hpp"
#include "net/line_process.hpp"

#include "troupe/process_pool.hpp"

namespace troupe::detail {

namespace {

struct LineState {
  static constexpr const char* name = "process";
  std::shared_ptr<net::LineProcess> process;
};

LineActor::behavior_type line_actor(LineActor::stateful_pointer<LineState> self,
                                    std::string command,
                                    std::chrono::milliseconds deadline) {
  self->state.process = std::make_shared<net::LineProcess>(
    net::LineProcessOptions{std::move(command), deadline});
  return {[=](line_atom, const std::string& line) -> caf::result<std::string> {
    try {
      return self->state.process->ask(line);
    } catch (const FailureError& error) {
      return caf::make_error(caf::sec::runtime_error,
                             std::string(error.what()));
    }
  }};
}

} // namespace

LineActor spawn_line_actor(caf::actor_system& system,
                           const std::string& command,
                           std::chrono::milliseconds deadline) {
  return system.spawn<caf::detached>(line_actor, command, deadline);
}

} // namespace troupe::detail
