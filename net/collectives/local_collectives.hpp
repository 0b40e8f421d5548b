// A group whose members are threads of one process: they publish the addresses
// of their buffers, meet, and each does its share on the memory of all. No byte
// is copied that the result does not need.
#pragma once

#include "net/collectives/group_control.hpp"
#include "net/collectives/host_group.hpp"

#include <memory>
#include <vector>

namespace troupe::net {

struct LocalGroup {
  struct Place {
    const std::byte* source = nullptr;
    std::byte* target = nullptr;
  };
  explicit LocalGroup(std::size_t members) : places(members) {}
  GroupControl control{};
  std::vector<Place> places; ///< by rank, for the current call
};

class LocalCollectives final : public HostCollectives {
public:
  LocalCollectives(GroupSpec spec, std::shared_ptr<LocalGroup> group);
  ~LocalCollectives() override;
  std::optional<Failure> failure() override;
  void abort(const Failure& failure) noexcept override;
  /// Returns true for the member that attaches last.
  bool attach() {
    return waiter_.attach();
  }

private:
  void do_all_reduce(std::byte* data, const Call& call) override;
  void do_all_gather(const std::byte* mine, std::byte* all,
                     const Call& call) override;
  void do_reduce_scatter(const std::byte* all, std::byte* mine,
                         const Call& call) override;
  void do_broadcast(std::byte* data, const Call& call) override;
  void do_barrier(const Call& call) override;
  /// Publishes this member's place, waits for all, runs `work` on all places,
  /// waits again.
  template <class Work>
  void together(GroupOperation operation, const Call& call,
                LocalGroup::Place mine, Work work);

  std::shared_ptr<LocalGroup> group_;
  GroupWaiter waiter_;
};

} // namespace troupe::net
