#include "actors/agents/agent_host_actor.hpp"

#include "actors/worker_base/worker_context.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::actors {

namespace {

using AgentHostSelf = Self<AgentHostActor, AgentHostState>;

/// Tells the master of sessions, and waits until it knows them.
class ToMaster final : public MasterSessions {
public:
  ToMaster(AgentHostActor actor, AgentEndpoint master,
           std::shared_ptr<NewSessions> new_sessions)
    : actor_(std::move(actor)),
      master_(std::move(master)),
      new_sessions_(std::move(new_sessions)) {}

  void open(const std::string& key, bool waits) override {
    const auto known = std::make_shared<std::promise<std::optional<Failure>>>();
    new_sessions_->put({key, waits, known});
    caf::anon_send(actor_, open_atom::value);
    if (auto failure = known->get_future().get())
      throw FailureError(std::move(*failure));
  }
  void close(const std::string& key) override {
    caf::anon_send(master_.sessions, stop_atom::value, key);
  }
  std::string url() const override {
    return master_.base_url;
  }

private:
  const AgentHostActor actor_;
  const AgentEndpoint master_;
  const std::shared_ptr<NewSessions> new_sessions_;
};

void tell_master(AgentHostSelf self) {
  const auto& setup = self->state.setup;
  const auto entry = setup.new_sessions->take();
  ask<SessionOpened>(
    self, setup.master.sessions, open_atom::value,
    Context{.flow = 0, .step = StepId{}, .incarnation = setup.incarnation},
    OpenSession{setup.worker, AgentHostActor{self}, entry.key, entry.waits},
    {.name = "open a session at agents.port", .is_work = false},
    [known = entry.known](const SessionOpened&) {
      known->set_value(std::nullopt);
    },
    [known = entry.known](Failure failure) {
      known->set_value(std::move(failure));
    });
}

/// Answers on the endpoint's thread: a prompt may take a while to render.
caf::result<ProgramReply> pass_on(AgentHostSelf self, const Context& context,
                                  const ProgramRequest& request) {
  Reply<ProgramReply> reply{self, context};
  auto done = self->state.open.open(self, reply);
  self->state.setup.host->post([host = self->state.setup.host, request,
                                done = std::move(done)] {
    host->handle({.is_post = request.is_post,
                  .path = request.path,
                  .key = request.key,
                  .body = request.body},
                 [done](net::ApiResponse response) {
                   done(ProgramReply{response.status, std::move(response.type),
                                     std::move(response.body)});
                 });
  });
  return reply.promise();
}

caf::result<SessionTaken> hand_out(AgentHostSelf self, const Context& context,
                                   const TakeSession& order) {
  Reply<SessionTaken> reply{self, context};
  if (auto session = self->state.setup.host->take(order.key))
    reply.deliver({SampleId{session->sample}, std::move(session->row),
                   Bits{session->timeout_s}});
  else
    reply.fail({.code = Errc::stale,
                .who = fmt::format("worker {}", self->state.setup.worker.value),
                .what = "the session has ended",
                .cause = ""});
  return reply.promise();
}

} // namespace

void NewSessions::put(Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
}

NewSessions::Entry NewSessions::take() {
  const std::lock_guard lock(mutex_);
  auto entry = std::move(entries_.front());
  entries_.pop_front();
  return entry;
}

AgentHostActor::behavior_type agent_host_actor(AgentHostSelf self,
                                               AgentHostSetup setup) {
  self->state.asks = Asks{setup.asks};
  self->state.setup = std::move(setup);
  return {
    [=](run_atom, const Context& context, const ProgramRequest& request) {
      return pass_on(self, context, request);
    },
    [=](take_atom, const Context& context, const TakeSession& order) {
      return hand_out(self, context, order);
    },
    [=](open_atom) { tell_master(self); },
    [=](done_atom, std::uint64_t id) { self->state.open.finish(id); },
    [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
      self->state.asks.fail(id, to_failure(message));
    },
  };
}

AgentHostActor make_agents(caf::actor_system& system, WorkerContext& worker,
                           const AgentEndpoint& master,
                           std::shared_ptr<AskTable> asks) {
  worker.agents = make_agent_host(worker);
  if (!worker.agents || !master.sessions)
    return {};
  const AgentHostSetup setup{.host = worker.agents,
                             .worker = worker.worker,
                             .master = master,
                             .incarnation = worker.incarnation,
                             .asks = std::move(asks)};
  const auto actor = system.spawn(agent_host_actor, setup);
  worker.agents->connect(
    std::make_unique<ToMaster>(actor, master, setup.new_sessions));
  return actor;
}

} // namespace troupe::actors
