// A group over processes of one host: each member has two staging places in a
// shared memory segment, results have two more. Chunk k is staged while chunk
// k-1 is summed and chunk k-2 copied out, with one barrier per chunk.
#pragma once

#include "net/base/shared_memory.hpp"
#include "net/collectives/group_control.hpp"
#include "net/collectives/host_group.hpp"

#include <string>

namespace troupe::net {

/// Returns the name of the group's segment under /dev/shm. It is a hash: names
/// of groups contain slashes and may be long.
std::string segment_name(const std::string& group);

class SharedCollectives final : public HostCollectives {
public:
  SharedCollectives(GroupSpec spec, std::shared_ptr<PeerProcesses> processes);
  ~SharedCollectives() override;
  std::optional<Failure> failure() override;
  void abort(const Failure& failure) noexcept override;

private:
  void do_all_reduce(std::byte* data, const Call& call) override;
  void do_all_gather(const std::byte* mine, std::byte* all,
                     const Call& call) override;
  void do_reduce_scatter(const std::byte* all, std::byte* mine,
                         const Call& call) override;
  void do_broadcast(std::byte* data, const Call& call) override;
  void do_barrier(const Call& call) override;

  void begin(GroupOperation operation, const Call& call);
  void reduce_small(std::byte* data, const Call& call);
  void reduce_in_chunks(std::byte* data, const Call& call);
  /// Calls stage(chunk, range) for every chunk, then, after a barrier,
  /// use(...).
  template <class Stage, class Use>
  void staged(const Call& call, std::size_t chunk_elements, Stage stage,
              Use use);
  std::byte* staging(std::size_t rank, std::size_t chunk) const;
  std::byte* result(std::size_t chunk) const;

  SharedMemory memory_;
  GroupWaiter waiter_;
  /// Number of chunks staged so far; its parity selects the staging place.
  std::size_t turn_ = 0;
};

} // namespace troupe::net
