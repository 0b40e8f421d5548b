// A group over processes of one host: each member has two staging places in a
// shared memory segment, results two more. Chunk k is staged while chunk k-1 is
// summed and chunk k-2 copied out, one barrier a chunk.
#pragma once

#include "net/group_control.hpp"
#include "net/host_group.hpp"
#include "net/shared_memory.hpp"

namespace troupe::net {

class SharedCollectives final : public HostCollectives {
public:
  SharedCollectives(GroupSpec spec, std::shared_ptr<PeerProcesses> processes);
  ~SharedCollectives() override;
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
  /// stage(chunk, range) on every chunk, then, after a barrier, use(..).
  template <class Stage, class Use>
  void staged(const Call& call, std::size_t chunk_elements, Stage stage,
              Use use);
  std::byte* staging(std::size_t rank, std::size_t chunk) const;
  std::byte* result(std::size_t chunk) const;

  SharedMemory memory_;
  GroupWaiter waiter_;
  /// Chunks staged so far: the parity of the next staging place.
  std::size_t turn_ = 0;
};

} // namespace troupe::net
