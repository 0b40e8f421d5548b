// Collectives between CPU devices. The transport follows from where the members
// live: threads of one process share pointers, processes of one host share a
// memory segment, different hosts form a chain of connections. All give the
// same bits.
#pragma once

#include "config/defaults.hpp"
#include "config/ids.hpp"
#include "config/trace.hpp"
#include "net/channel.hpp"
#include "net/collectives.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::net {

class DataPlane;

enum class Transport : std::uint8_t {
  automatic,     ///< by where the members are
  threads,       ///< all in one process
  shared_memory, ///< all on one host
  sockets,       ///< anywhere
};

struct GroupMember {
  WorkerId worker;
  std::string host; ///< equal text: the same machine
};

struct GroupSpec {
  /// Unique among all runs of a host: run id, incarnation, replica, axis. A
  /// name is used once; a rebuilt group has another.
  std::string name;
  std::uint32_t index = 0; ///< my rank
  std::vector<GroupMember> members;
  Transport transport = Transport::automatic;
  std::chrono::milliseconds progress_deadline = defaults::collective_deadline;
  std::optional<trace::Track> track; ///< where each call's span is drawn
};

/// The groups of one process: where its members meet. Thread-safe.
class GroupRegistry {
public:
  GroupRegistry();
  ~GroupRegistry();
  GroupRegistry(const GroupRegistry&) = delete;
  GroupRegistry& operator=(const GroupRegistry&) = delete;

  /// Takes sockets that peers open for groups from `plane` from now on; needed
  /// on all members of a group over sockets. `plane` outlives the registry's
  /// groups.
  void use(DataPlane& plane);
  /// Aborts every group that a member of this process is in.
  void abort_all(const Failure& failure) noexcept;

  struct State;
  State& state() noexcept {
    return *state_;
  }

private:
  std::shared_ptr<State> state_;
};

/// Joins a group, which waits for no other member: the first operation does
/// (deadline, abort_all). Over sockets, the other processes must know the run
/// by now. Throws FailureError, or InvariantError for a spec that makes no
/// sense. One member (size 1) never waits for anything.
std::shared_ptr<Collectives> make_host_collectives(const GroupSpec& spec,
                                                   GroupRegistry& registry);

/// Joins a channel between the two members of `spec` (`index`: my end), on any
/// transport, like make_host_collectives.
std::shared_ptr<Channel> make_host_channel(const GroupSpec& spec,
                                           GroupRegistry& registry);

} // namespace troupe::net
