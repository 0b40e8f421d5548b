// Collectives between CPU devices. The transport depends on the location of the
// members: threads of one process share pointers, processes of one host share a
// memory segment, different hosts form a chain of connections. All yield the
// same bits.
#pragma once

#include "config/base/defaults.hpp"
#include "config/base/ids.hpp"
#include "config/trace/trace.hpp"
#include "net/collectives/channel.hpp"
#include "net/collectives/collectives.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::net {

class DataPlane;

enum class Transport : std::uint8_t {
  automatic,     ///< by location of the members
  threads,       ///< all in one process
  shared_memory, ///< all on one host
  sockets,       ///< anywhere
};

struct GroupMember {
  WorkerId worker;
  std::string host; ///< equal text: same machine
};

struct GroupSpec {
  /// Unique among all runs of a host: run id, incarnation, replica, axis. A
  /// name is used once; a rebuilt group gets another.
  std::string name;
  std::uint32_t index = 0; ///< this member's rank
  std::vector<GroupMember> members;
  Transport transport = Transport::automatic;
  std::chrono::milliseconds progress_deadline = defaults::collective_deadline;
  std::optional<trace::Track> track; ///< track for the spans of calls
};

/// The groups of one process: where its members meet. Thread-safe.
class GroupRegistry {
public:
  GroupRegistry();
  ~GroupRegistry();
  GroupRegistry(const GroupRegistry&) = delete;
  GroupRegistry& operator=(const GroupRegistry&) = delete;

  /// Accepts sockets that peers open for groups through `plane`; needed on all
  /// members of a group over sockets. `plane` must outlive the registry's
  /// groups.
  void use(DataPlane& plane);
  /// Aborts every group with a member in this process.
  void abort_all(const Failure& failure) noexcept;

  struct State;
  State& state() noexcept {
    return *state_;
  }

private:
  std::shared_ptr<State> state_;
};

/// Joins a group without waiting for other members: the first operation waits
/// (deadline, abort_all). Over sockets, the other processes must know the run
/// by then. Throws FailureError, or InvariantError for an invalid spec. A
/// single member (size 1) never waits.
std::shared_ptr<Collectives> make_host_collectives(const GroupSpec& spec,
                                                   GroupRegistry& registry);

/// Joins both directions between the two members of `spec` (`index`: this end),
/// over any transport, like make_host_collectives.
ChannelGroups make_channel_groups(const GroupSpec& spec,
                                  GroupRegistry& registry);

/// Joins a channel over these groups, for memory of the host.
std::shared_ptr<Channel> make_host_channel(const GroupSpec& spec,
                                           GroupRegistry& registry);

} // namespace troupe::net
