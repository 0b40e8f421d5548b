#include "net/collectives/host_collectives.hpp"

#include "config/base/awake_clock.hpp"
#include "net/base/defaults.hpp"
#include "net/collectives/chain_collectives.hpp"
#include "net/collectives/local_collectives.hpp"
#include "net/collectives/peer_processes.hpp"
#include "net/collectives/shared_collectives.hpp"
#include "net/data_plane/data_plane.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <list>
#include <map>
#include <mutex>

namespace troupe::net {

struct GroupRegistry::State
  : std::enable_shared_from_this<GroupRegistry::State> {
  std::mutex mutex;
  std::condition_variable socket_came;
  DataPlane* plane = nullptr;
  const std::shared_ptr<PeerProcesses> processes
    = std::make_shared<PeerProcesses>();
  std::map<std::string, std::shared_ptr<LocalGroup>> meeting; ///< incomplete
  std::map<std::pair<std::string, std::uint32_t>, PeerSocket> sockets;
  std::list<std::pair<std::string, std::weak_ptr<Collectives>>> groups;
  std::map<std::string, Failure> aborted; ///< for members that arrive later

  void add(const std::string& name, const std::shared_ptr<Collectives>& group);
  std::shared_ptr<Collectives> join_threads(const GroupSpec& spec);
  std::shared_ptr<Collectives> join_chain(const GroupSpec& spec);
  PeerSocket take_socket(const ChainCollectives& group, const GroupSpec& spec,
                         std::uint32_t rank);
};

namespace {

/// A group of one: nothing to wait for.
class LonelyCollectives final : public HostCollectives {
public:
  using HostCollectives::HostCollectives;
  std::optional<Failure> failure() override {
    return std::nullopt;
  }
  void abort(const Failure&) noexcept override {}

private:
  void do_all_reduce(std::byte*, const Call&) override {}
  void do_all_gather(const std::byte* mine, std::byte* all,
                     const Call& call) override {
    if (mine != all && call.count != 0)
      std::memcpy(all, mine, call.bytes());
  }
  void do_reduce_scatter(const std::byte* all, std::byte* mine,
                         const Call& call) override {
    if (mine != all && call.count != 0)
      std::memcpy(mine, all, call.bytes());
  }
  void do_broadcast(std::byte*, const Call&) override {}
  void do_barrier(const Call&) override {}
};

Transport chosen_transport(const GroupSpec& spec) {
  if (spec.transport != Transport::automatic)
    return spec.transport;
  const auto all_share = [&](auto part) {
    return std::all_of(spec.members.begin(), spec.members.end(),
                       [&](const GroupMember& member) {
                         return member.*part == spec.members[0].*part;
                       });
  };
  if (all_share(&GroupMember::worker))
    return Transport::threads;
  return all_share(&GroupMember::host) ? Transport::shared_memory
                                       : Transport::sockets;
}

} // namespace

void GroupRegistry::State::add(const std::string& name,
                               const std::shared_ptr<Collectives>& group) {
  std::lock_guard lock(mutex);
  groups.remove_if([](const auto& old) { return old.second.expired(); });
  groups.emplace_back(name, group);
  if (const auto found = aborted.find(name); found != aborted.end())
    group->abort(found->second);
}

std::shared_ptr<Collectives>
GroupRegistry::State::join_threads(const GroupSpec& spec) {
  std::shared_ptr<LocalCollectives> member;
  {
    std::lock_guard lock(mutex);
    std::shared_ptr<LocalGroup>& group = meeting[spec.name];
    if (!group)
      group = std::make_shared<LocalGroup>(spec.members.size());
    TROUPE_CHECK(group->places.size() == spec.members.size(),
                 "group '" + spec.name + "' with two sizes");
    member = std::make_shared<LocalCollectives>(spec, group);
    if (member->attach())
      meeting.erase(spec.name);
  }
  add(spec.name, member);
  return member;
}

PeerSocket GroupRegistry::State::take_socket(const ChainCollectives& group,
                                             const GroupSpec& spec,
                                             std::uint32_t rank) {
  const auto deadline = AwakeClock::now() + spec.progress_deadline;
  std::unique_lock lock(mutex);
  for (;;) {
    group.check(); // aborted during the wait
    auto found = sockets.find({spec.name, rank});
    if (found != sockets.end()) {
      PeerSocket socket = std::move(found->second);
      sockets.erase(found);
      return socket;
    }
    if (AwakeClock::now() > deadline)
      throw FailureError({Errc::deadline, "group '" + spec.name + "'",
                          "rank " + std::to_string(rank) + " did not connect",
                          ""});
    socket_came.wait_for(lock, kLivenessSlice);
  }
}

std::shared_ptr<Collectives>
GroupRegistry::State::join_chain(const GroupSpec& spec) {
  DataPlane* via = nullptr;
  {
    std::lock_guard lock(mutex);
    via = plane;
  }
  TROUPE_CHECK(via != nullptr, "a group over sockets needs a data plane");
  auto member = std::make_shared<ChainCollectives>(spec);
  add(spec.name, member);
  member->connect(*via, [state = shared_from_this(), member = member.get(),
                         spec](std::uint32_t rank) {
    return state->take_socket(*member, spec, rank);
  });
  return member;
}

GroupRegistry::GroupRegistry() : state_(std::make_shared<State>()) {}

GroupRegistry::~GroupRegistry() {
  abort_all({Errc::aborted, "this process", "its groups were closed", ""});
}

void GroupRegistry::use(DataPlane& plane) {
  {
    std::lock_guard lock(state_->mutex);
    state_->plane = &plane;
  }
  plane.on_group_socket(
    [state = state_](std::string group, std::uint32_t rank, PeerSocket socket) {
      std::lock_guard lock(state->mutex);
      if (state->aborted.contains(group))
        return; // closing the socket notifies the peer
      state->sockets.insert_or_assign({std::move(group), rank},
                                      std::move(socket));
      state->socket_came.notify_all();
    });
}

void GroupRegistry::abort_all(const Failure& failure) noexcept {
  decltype(state_->groups) groups;
  {
    std::lock_guard lock(state_->mutex);
    groups.swap(state_->groups);
    state_->sockets.clear();
    for (const auto& [name, group] : groups)
      state_->aborted.emplace(name, failure);
  }
  for (const auto& [name, weak] : groups)
    if (auto group = weak.lock())
      group->abort(failure);
}

std::shared_ptr<Collectives> make_host_collectives(const GroupSpec& spec,
                                                   GroupRegistry& registry) {
  TROUPE_CHECK(spec.index < spec.members.size()
                 && spec.members.size() <= kMaxHostMembers,
               "group '" + spec.name + "': rank " + std::to_string(spec.index)
                 + " of " + std::to_string(spec.members.size()));
  if (spec.members.size() == 1)
    return std::make_shared<LonelyCollectives>(spec);
  switch (chosen_transport(spec)) {
  case Transport::threads:
    return registry.state().join_threads(spec);
  case Transport::shared_memory: {
    auto member
      = std::make_shared<SharedCollectives>(spec, registry.state().processes);
    registry.state().add(spec.name, member);
    return member;
  }
  default:
    return registry.state().join_chain(spec);
  }
}

ChannelGroups make_channel_groups(const GroupSpec& spec,
                                  GroupRegistry& registry) {
  TROUPE_CHECK(spec.members.size() == 2, "a channel has two ends");
  const auto direction = [&](std::uint32_t sender) {
    GroupSpec one = spec;
    one.name += sender == 0 ? ">" : "<";
    one.index = spec.index == sender ? 0 : 1;
    one.members = {spec.members[sender], spec.members[1 - sender]};
    return make_host_collectives(one, registry);
  };
  const auto there = direction(0);
  const auto back = direction(1);
  return spec.index == 0 ? ChannelGroups{there, back, 0}
                         : ChannelGroups{back, there, 1};
}

std::shared_ptr<Channel> make_host_channel(const GroupSpec& spec,
                                           GroupRegistry& registry) {
  return std::make_shared<Channel>(make_channel_groups(spec, registry));
}

} // namespace troupe::net
