#include "actors/user/python_leader.hpp"

#include "actors/user/line_actor.hpp"
#include "actors/user/python_conversation.hpp"

#include "troupe/task.hpp"
#include <fmt/format.h>

#include <vector>

namespace troupe::actors {

namespace {

struct LeaderState {
  static constexpr const char* name = "python leader";

  LeaderState() = default;
  /// Ends the processes: their actors have threads, which wait for messages.
  ~LeaderState() {
    *stop = true;
    for (const auto& process : processes)
      caf::anon_send_exit(process, caf::exit_reason::user_shutdown);
  }
  LeaderState(const LeaderState&) = delete;
  LeaderState& operator=(const LeaderState&) = delete;

  const UserEntry* entry = nullptr;
  std::vector<detail::LineActor> processes;
  std::shared_ptr<std::atomic<bool>> stop
    = std::make_shared<std::atomic<bool>>(false);
  std::uint64_t last_id = 0; ///< of a conversation
};
using LeaderSelf = SampleActor::stateful_pointer<LeaderState>;

Task<Sample> lead(LeaderSelf self, Model model, Sample sample) {
  auto& state = self->state;
  const auto id = ++state.last_id;
  const auto process = state.processes[id % state.processes.size()];
  PythonConversation talk(id, *state.entry, sample);
  std::string line = talk.whole();
  for (;;) {
    const std::string answer
      = co_await ask<std::string>(self, std::chrono::milliseconds(0), process,
                                  detail::line_atom::value, line);
    const PythonStep step = talk.take(answer, sample);
    if (step.kind == PythonStep::Kind::end)
      co_return sample;
    if (step.kind == PythonStep::Kind::forgotten) {
      line = talk.whole();
      continue;
    }
    const TurnOptions options{.max_tokens = step.max_tokens};
    sample = co_await model(step.role).extend(std::move(sample), options);
    line = talk.next(sample);
  }
}

SampleActor::behavior_type python_leader(LeaderSelf self, const Model& model,
                                         const LeaderSetup& setup) {
  self->state.entry = setup.entry;
  for (std::uint32_t i = 0; i < setup.entry->python->processes; ++i) {
    auto process = setup.process;
    if (i > 0)
      process.name += fmt::format("_process_{}", i + 1);
    self->state.processes.push_back(detail::spawn_line_actor(
      self->home_system(), std::move(process), self->state.stop));
  }
  return {
    [=](run_atom, Sample sample) -> caf::result<Sample> {
      return lead(self, model, std::move(sample));
    },
  };
}

} // namespace

SampleActor spawn_python_leader(caf::actor_system& system, LeaderSetup setup) {
  const auto row = setup.row;
  return system.spawn<detail::UserInstance<LeaderSelf>>(
    row, [setup = std::move(setup)](LeaderSelf self) {
      return python_leader(self, detail::model_for(self, setup.model), setup);
    });
}

} // namespace troupe::actors
