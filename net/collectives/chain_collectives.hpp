// A group over sockets: rank r is connected to r-1 and r+1. Partial sums travel
// from rank 0 to the last in rank order and totals travel back, both pipelined
// in pieces, so the bits equal those of every other transport.
#pragma once

#include "net/collectives/group_control.hpp"
#include "net/collectives/group_sockets.hpp"
#include "net/collectives/host_group.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe::net {

class DataPlane;

class ChainCollectives final : public HostCollectives {
public:
  /// Takes the socket that rank `rank` of a group has opened, once it has
  /// arrived.
  using TakeSocket = std::function<PeerSocket(std::uint32_t rank)>;

  explicit ChainCollectives(GroupSpec spec);
  ~ChainCollectives() override;
  /// Dials the left neighbor, whose process accepts regardless of what its
  /// members do. The first operation waits for the right neighbor's connection:
  /// members of several groups may join them in any order.
  void connect(const DataPlane& plane, TakeSocket take);
  std::optional<Failure> failure() override;
  void abort(const Failure& failure) noexcept override;
  /// Throws the failure of the group, if any.
  void check() const;

private:
  void do_all_reduce(std::byte* data, const Call& call) override;
  void do_all_gather(const std::byte* mine, std::byte* all,
                     const Call& call) override;
  void do_reduce_scatter(const std::byte* all, std::byte* mine,
                         const Call& call) override;
  void do_broadcast(std::byte* data, const Call& call) override;
  void do_barrier(const Call& call) override;

  bool first() const noexcept {
    return spec_.index == 0;
  }
  bool last() const noexcept {
    return spec_.index + 1 == spec_.members.size();
  }
  template <class Body>
  void guarded(const Call& call, Body&& body);
  void agree(GroupOperation operation, const Call& call);
  void await_right();
  void sum_chain(std::byte* data, std::size_t count, DType dtype);
  void sum_any(std::byte* data, std::size_t count, DType dtype);
  void send_from(std::byte* data, std::size_t bytes, std::uint32_t root);
  Lane lane(bool to_left, bool sending, std::byte* data, std::size_t end);
  LaneWaits waits() const;

  TakeSocket take_;
  PeerSocket left_, right_;
  Descriptor abort_event_;
  mutable std::mutex mutex_; ///< failure, and sockets while connecting
  std::optional<Failure> failure_;
};

} // namespace troupe::net
