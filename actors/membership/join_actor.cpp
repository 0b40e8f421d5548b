#include "actors/membership/join_actor.hpp"

#include "net/base/wire.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using JoinSelf = Self<JoinActor, JoinState>;

Failure refusal(const std::string& what) {
  return {.code = Errc::refused, .who = "master", .what = what, .cause = ""};
}

/// Returns the number that the launcher assigned, else the lowest free one.
std::optional<std::uint32_t> number_for(const JoinState& state,
                                        std::uint32_t wanted) {
  if (wanted < state.setup.num_workers)
    return state.joined.contains(wanted) ? std::nullopt : std::optional{wanted};
  for (std::uint32_t i = 0; i < state.setup.num_workers; ++i)
    if (!state.joined.contains(i))
      return i;
  return std::nullopt;
}

/// Starts the heartbeat only now: a node that has no reply yet would not
/// understand it.
void answered(JoinSelf self, std::uint32_t number) {
  auto& state = self->state;
  const auto& worker = state.joined.at(number);
  self->send(state.setup.heartbeat, join_atom::value, number,
             fmt::format("worker {} (pid {})", number, worker.request.pid),
             worker.node);
  state.setup.on_joined(WorkerId{number});
  if (++state.num_answered < state.setup.num_workers)
    return;
  std::vector<Joined> all;
  for (const auto& [_, joined] : state.joined)
    all.push_back(joined);
  state.setup.on_full(std::move(all));
}

caf::result<JoinAccepted> join(JoinSelf self, const JoinRequest& request,
                               const NodeActor& node) {
  auto& state = self->state;
  if (!net::same_token(request.token, state.setup.token))
    return to_error(refusal("wrong token"));
  if (request.build != state.setup.build)
    return to_error(refusal(fmt::format(
      "the worker is '{}', this run is '{}'; start the same binary everywhere",
      request.build, state.setup.build)));
  const auto number = number_for(state, request.wanted);
  if (!number)
    return to_error(refusal("the run has all its workers"));
  state.joined[*number] = {node, request};
  JoinAccepted reply{state.setup.join_reply};
  reply.join_reply.worker = WorkerId{*number};
  self->delayed_send(self, std::chrono::milliseconds{0}, join_atom::value,
                     *number);
  return reply;
}

} // namespace

JoinActor::behavior_type join_actor(JoinSelf self, JoinSetup setup) {
  self->state.setup = std::move(setup);
  return {
    [=](join_atom, const JoinRequest& request, const NodeActor& node) {
      return join(self, request, node);
    },
    [=](join_atom, std::uint32_t number) { answered(self, number); },
  };
}

} // namespace troupe::actors
