#include "actors/lobby_actor.hpp"

#include "config/defaults.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using LobbySelf = Self<LobbyActor, LobbyState>;

Failure refusal(const std::string& what) {
  return {.code = Errc::refused, .who = "master", .what = what, .cause = ""};
}

/// The number the launcher gave it, else the lowest free one.
std::optional<std::uint32_t> number_for(const LobbyState& state,
                                        std::uint32_t wanted) {
  if (wanted < state.setup.num_workers)
    return state.joined.contains(wanted) ? std::nullopt : std::optional{wanted};
  for (std::uint32_t i = 0; i < state.setup.num_workers; ++i)
    if (!state.joined.contains(i))
      return i;
  return std::nullopt;
}

void watch(LobbySelf self, const NodeActor& node) {
  self->monitor(node);
  self->set_down_handler([=](const caf::down_msg& down) {
    for (const auto& [number, joined] : self->state.joined)
      if (joined.node.address() == down.source)
        self->state.setup.on_lost(
          WorkerId{number},
          {.code = Errc::peer_lost,
           .who = fmt::format("worker {} (pid {})", number, joined.request.pid),
           .what = "the process ended or its connection closed",
           .cause = ""});
  });
}

void open_if_full(LobbySelf self) {
  auto& state = self->state;
  if (state.joined.size() < state.setup.num_workers
      || std::exchange(state.opened, true))
    return;
  std::vector<Joined> all;
  for (const auto& [number, joined] : state.joined)
    all.push_back(joined);
  state.setup.on_full(std::move(all));
}

/// Who is here already would take a long silence for the master's end.
void greet_the_waiting(LobbySelf self) {
  const auto& state = self->state;
  if (state.opened)
    return;
  for (const auto& [number, joined] : state.joined)
    caf::anon_send(joined.node, ping_atom::value, Context{}, PingOrder{});
  self->delayed_send(self, defaults::heartbeat_period, ping_atom::value);
}

caf::result<JoinAnswer> join(LobbySelf self, const JoinRequest& request,
                             const NodeActor& node) {
  auto& state = self->state;
  if (!same_token(request.token, state.setup.token))
    return to_error(refusal("wrong token"));
  if (request.build != state.setup.build)
    return to_error(refusal(fmt::format(
      "the worker is '{}', this run is '{}'; start the same binary everywhere",
      request.build, state.setup.build)));
  const auto number = number_for(state, request.wanted);
  if (!number)
    return to_error(refusal("the run has all its workers"));
  state.joined[*number] = {node, request};
  watch(self, node);
  JoinAnswer answer{state.setup.welcome};
  answer.welcome.worker = WorkerId{*number};
  self->delayed_send(self, std::chrono::milliseconds{0}, tick_atom::value);
  return answer;
}

} // namespace

bool same_token(const std::string& a, const std::string& b) {
  if (a.size() != b.size())
    return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

LobbyActor::behavior_type lobby_actor(LobbySelf self, LobbySetup setup) {
  self->state.setup = std::move(setup);
  greet_the_waiting(self);
  return {
    [=](join_atom, const JoinRequest& request, const NodeActor& node) {
      return join(self, request, node);
    },
    [=](tick_atom) { open_if_full(self); },
    [=](ping_atom) { greet_the_waiting(self); },
  };
}

} // namespace troupe::actors
