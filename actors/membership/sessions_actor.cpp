#include "actors/membership/sessions_actor.hpp"

#include "models/agents/api_error.hpp"
#include "models/agents/api_reply.hpp"
#include "models/agents/session_report.hpp"
#include "net/base/wire.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::actors {

namespace {

using SessionsSelf = Self<SessionsActor, SessionsState>;

constexpr unsigned no_content = 204;
constexpr unsigned not_authorized = 401;
constexpr unsigned no_such_path = 404;
constexpr unsigned body_too_large = 413;
constexpr unsigned no_worker = 503;
constexpr unsigned no_answer_in_time = 504;

/// A program that asks for a session when none waits gets its answer after so
/// long, below the time limits of usual clients and proxies.
constexpr std::chrono::seconds longest_wait{20};
constexpr std::chrono::seconds look_at_waiting{1};

using ProgramAnswer = net::ApiServer::Answer;

void refuse(const ProgramAnswer& answer, unsigned status,
            const std::string& sentence) {
  answer(
    {.status = status, .body = models::error_body({sentence, "", status})});
}

void refuse(const ProgramAnswer& answer, const Failure& failure) {
  const bool late = failure.code == Errc::deadline;
  refuse(answer, late ? no_answer_in_time : no_worker,
         "the worker of this session gave no answer: " + to_string(failure));
}

Context context_of_endpoint(SessionsSelf self) {
  return {
    .flow = 0, .step = StepId{}, .incarnation = self->state.setup.incarnation};
}

AskSpec spec_of(SessionsSelf self, std::string name, WorkerId worker) {
  return {.name = std::move(name),
          .worker = worker,
          .deadline = self->state.setup.within,
          .is_work = false};
}

// -- requests of sessions ----------------------------------------------------

void pass_on(SessionsSelf self, ProgramVisit visit) {
  auto& [call, answer] = visit;
  const auto worker = self->state.setup.share->with(
    [&](const auto& sessions) { return sessions.worker_of(visit.call.key); });
  if (!worker)
    return refuse(answer, not_authorized,
                  "no session has this key; a session's key ends with it");
  if (call.is_too_long)
    return refuse(answer, body_too_large, "the body is longer than 64 MiB");
  ask<ProgramReply>(
    self, self->state.hosts.at(*worker), run_atom::value,
    context_of_endpoint(self),
    ProgramRequest{std::move(call.key), call.is_post, std::move(call.path),
                   std::move(call.body)},
    spec_of(self, "request of an agent", *worker),
    [answer = answer](ProgramReply& reply) {
      answer({.status = reply.status,
              .type = std::move(reply.type),
              .body = std::move(reply.body)});
    },
    [answer = answer](const Failure& failure) { refuse(answer, failure); });
}

// -- sessions that wait for a program ----------------------------------------

void wait_for_session(SessionsSelf self, const ProgramAnswer& answer) {
  self->state.waiting.push_back({answer, self->clock().now() + longest_wait});
  if (!std::exchange(self->state.looks, true))
    self->delayed_send(self, look_at_waiting, tick_atom::value);
}

/// Gives the program the session that has waited longest; one whose worker does
/// not hand it out has ended meanwhile, and the next one follows.
void hand_out(SessionsSelf self, const ProgramAnswer& answer) {
  auto& share = *self->state.setup.share;
  const auto key = share.with([](auto& sessions) { return sessions.take(); });
  if (!key)
    return wait_for_session(self, answer);
  const auto worker
    = share.with([&](const auto& all) { return *all.worker_of(*key); });
  ask<SessionTaken>(
    self, self->state.hosts.at(worker), take_atom::value,
    context_of_endpoint(self), TakeSession{*key},
    spec_of(self, "hand out a session", worker),
    [answer, key = *key,
     url = self->state.setup.base_url](SessionTaken& taken) {
      answer({.body = models::taken_session_body(
                {.key = key,
                 .sample = taken.sample.value,
                 .row = std::move(taken.row),
                 .timeout_s = taken.timeout_s.number()},
                url)});
    },
    [self, answer](const Failure&) { hand_out(self, answer); });
}

SessionOpened open(SessionsSelf self, const OpenSession& session) {
  auto& state = self->state;
  state.hosts[session.worker] = session.host;
  const auto count = state.setup.share->with([&](auto& sessions) {
    sessions.open(session.key, session.worker, session.waits);
    return sessions.size();
  });
  if (session.waits && !state.waiting.empty()) {
    const auto answer = std::move(state.waiting.front().answer);
    state.waiting.pop_front();
    hand_out(self, answer);
  }
  return {count};
}

/// Answers programs for which there was no session for long; they ask again.
void look(SessionsSelf self) {
  auto& waiting = self->state.waiting;
  while (!waiting.empty() && waiting.front().until <= self->clock().now()) {
    waiting.front().answer({.status = no_content, .body = ""});
    waiting.pop_front();
  }
  self->state.looks = !waiting.empty();
  if (self->state.looks)
    self->delayed_send(self, look_at_waiting, tick_atom::value);
}

void handle(SessionsSelf self) {
  auto& share = *self->state.setup.share;
  auto visit = share.take();
  const bool shows_token = share.is_token(visit.call.key);
  const bool wants_session
    = visit.call.is_post && visit.call.path == "/v1/sessions";
  if (shows_token && wants_session)
    return hand_out(self, visit.answer);
  if (shows_token)
    return refuse(visit.answer, no_such_path,
                  "the run's token is for POST /v1/sessions; the other paths "
                  "need the key of a session");
  if (wants_session)
    return refuse(visit.answer, not_authorized,
                  "this is not the run's token for agents; it is in "
                  ".agents_token of the run folder");
  pass_on(self, std::move(visit));
}

} // namespace

void EndpointShare::put(ProgramVisit visit) {
  const std::lock_guard lock(mutex_);
  visits_.push_back(std::move(visit));
}

ProgramVisit EndpointShare::take() {
  const std::lock_guard lock(mutex_);
  auto visit = std::move(visits_.front());
  visits_.pop_front();
  return visit;
}

bool EndpointShare::is_token(const std::string& key) const {
  return net::same_token(key, token_);
}

bool EndpointShare::knows(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return is_token(key) || sessions_.worker_of(key).has_value();
}

SessionsActor::behavior_type sessions_actor(SessionsSelf self,
                                            SessionsSetup setup) {
  self->state.asks = Asks{setup.asks};
  self->state.setup = std::move(setup);
  return {
    [=](open_atom, const Context&, const OpenSession& session) {
      return open(self, session);
    },
    [=](stop_atom, const std::string& key) {
      self->state.setup.share->with(
        [&](auto& sessions) { sessions.close(key); });
    },
    [=](take_atom) { handle(self); },
    [=](tick_atom) { look(self); },
    [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
      self->state.asks.fail(id, to_failure(message));
    },
  };
}

} // namespace troupe::actors
