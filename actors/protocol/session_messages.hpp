// Messages between the master's endpoint for agents and the workers that have
// their sessions: which sessions there are, requests of their programs with the
// answers, and which one a program takes. Texts of conversations go this way
// because only orders are encrypted between hosts, and workers' own endpoints
// are on their loopback addresses.
#pragma once

#include "actors/protocol/message_parts.hpp"

namespace troupe::actors {

/// A request of a program, as the master's endpoint got it.
struct ProgramRequest {
  std::string key;
  bool is_post = false;
  std::string path;
  std::string body;
};
TROUPE_INSPECT(ProgramRequest, x.key, x.is_post, x.path, x.body)

struct ProgramReply {
  std::uint32_t status = 200;
  std::string type; ///< media type of the body
  std::string body;
};
TROUPE_INSPECT(ProgramReply, x.status, x.type, x.body)

/// A program takes the session of this key; its time begins.
struct TakeSession {
  std::string key;
};
TROUPE_INSPECT(TakeSession, x.key)

struct SessionTaken {
  SampleId sample;
  std::string row; ///< JSON
  Bits timeout_s;
};
TROUPE_INSPECT(SessionTaken, x.sample, x.row, x.timeout_s)

/// The sessions of a worker.
using AgentHostActor = caf::typed_actor<
  caf::replies_to<run_atom, Context, ProgramRequest>::with<ProgramReply>,
  caf::replies_to<take_atom, Context, TakeSession>::with<SessionTaken>,
  caf::reacts_to<open_atom>, // there is a session to tell the master of
  caf::reacts_to<done_atom, std::uint64_t>,
  caf::reacts_to<fail_atom, std::uint64_t, FailureMessage>>;

/// A session that programs may reach through the master.
struct OpenSession {
  WorkerId worker;
  AgentHostActor host;
  std::string key;
  bool waits = false; ///< for a program that takes it
};
TROUPE_INSPECT(OpenSession, x.worker, x.host, x.key, x.waits)

struct SessionOpened {
  std::uint64_t sessions = 0; ///< open ones of the run
};
TROUPE_INSPECT(SessionOpened, x.sessions)

/// The master's endpoint: which worker has the session of a key, and which
/// sessions wait for a program.
using SessionsActor = caf::typed_actor<
  caf::replies_to<open_atom, Context, OpenSession>::with<SessionOpened>,
  caf::reacts_to<stop_atom, std::string>, // the session of this key has ended
  caf::reacts_to<take_atom>,              // a request has come
  caf::reacts_to<tick_atom>,              // look who has waited long enough
  caf::reacts_to<fail_atom, std::uint64_t, FailureMessage>>;

/// The master's endpoint as workers know it.
struct AgentEndpoint {
  SessionsActor sessions; ///< null: the run has none (agents.port)
  std::string base_url;   ///< "http://127.0.0.1:4711/v1"
};
TROUPE_INSPECT(AgentEndpoint, x.sessions, x.base_url)

} // namespace troupe::actors
