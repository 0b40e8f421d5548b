#include "net/collectives/chain_collectives.hpp"

#include "net/base/defaults.hpp"
#include "net/collectives/reduce.hpp"
#include "net/data_plane/data_plane.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace troupe::net {

namespace {

/// fp32 elements of a bf16 sum that are sent at a time.
constexpr std::size_t kWideElements = std::size_t{1} << 18;

std::string chain_member(const GroupSpec& spec, std::size_t rank) {
  return "rank " + std::to_string(rank) + " (worker "
         + to_string(spec.members[rank].worker) + ") of group '" + spec.name
         + "'";
}

} // namespace

ChainCollectives::ChainCollectives(GroupSpec spec)
  : HostCollectives(std::move(spec)),
    abort_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  TROUPE_CHECK(abort_event_.get() >= 0, "no descriptor for an event");
}

ChainCollectives::~ChainCollectives() = default;

LaneWaits ChainCollectives::waits() const {
  return {abort_event_.get(), spec_.progress_deadline};
}

void ChainCollectives::connect(const DataPlane& plane, TakeSocket take) {
  take_ = std::move(take);
  if (first())
    return;
  guarded({0, DType::u8, 0, "connect"}, [&] {
    const WorkerId peer = spec_.members[spec_.index - 1].worker;
    auto [host, port]
      = peer == plane.options().self
          ? std::pair(plane.options().bind_address, plane.port())
          : plane.address_of(peer);
    auto left = dial_group(
      {host, port, plane.options().token, plane.options().self, spec_.name,
       spec_.index, chain_member(spec_, spec_.index - 1), plane.options().tls},
      waits());
    std::lock_guard lock(mutex_);
    left_ = std::move(left);
  });
}

void ChainCollectives::await_right() {
  if (last() || right_.number() >= 0)
    return;
  auto right = take_(spec_.index + 1);
  std::lock_guard lock(mutex_);
  right_ = std::move(right);
}

void ChainCollectives::check() const {
  std::lock_guard lock(mutex_);
  if (failure_)
    throw FailureError(*failure_);
}

/// A neighbour that ended its group has closed its sockets.
std::optional<Failure> ChainCollectives::failure() {
  for (const PeerSocket* socket : {&left_, &right_}) {
    pollfd asked{socket->number(), POLLRDHUP, 0};
    if (::poll(&asked, 1, 0) > 0 && asked.revents != 0)
      abort({Errc::peer_lost,
             chain_member(spec_,
                          socket == &left_ ? spec_.index - 1 : spec_.index + 1),
             "closed its connection", ""});
  }
  const std::lock_guard lock(mutex_);
  return failure_;
}

void ChainCollectives::abort(const Failure& failure) noexcept {
  std::lock_guard lock(mutex_);
  if (!failure_)
    failure_ = failure;
  const std::uint64_t one = 1;
  // an event that is already set may refuse more: it remains set
  [[maybe_unused]] const ssize_t written
    = ::write(abort_event_.get(), &one, sizeof(one));
  for (const PeerSocket* socket : {&left_, &right_})
    if (socket->number() >= 0)
      ::shutdown(socket->number(), SHUT_RDWR); // the neighbors notice at once
}

/// Runs `body`; its first failure becomes the group's, and neighbors see our
/// sockets close.
template <class Body>
void ChainCollectives::guarded(const Call& call, Body&& body) {
  check();
  try {
    body();
  } catch (const FailureError& error) {
    Failure failure = error.failure();
    failure.what
      += std::string(" (in '") + call.name + "' of group '" + spec_.name + "')";
    abort(failure);
    check();
  }
}

Lane ChainCollectives::lane(bool to_left, bool sending, std::byte* data,
                            std::size_t end) {
  Lane made;
  made.socket = to_left ? &left_ : &right_;
  made.peer = chain_member(spec_, to_left ? spec_.index - 1 : spec_.index + 1);
  made.sending = sending;
  made.data = data;
  made.end = end;
  return made;
}

/// Compares the call with the left neighbor's on each rank; a difference ends
/// the group.
void ChainCollectives::agree(GroupOperation operation, const Call& call) {
  await_right();
  CallMark mine
    = make_call_mark(operation, call.count, call.dtype, call.root, call.name);
  CallMark theirs;
  const std::size_t size = sizeof(CallMark);
  std::vector<Lane> lanes;
  if (!last()) {
    lanes.push_back(
      lane(false, true, reinterpret_cast<std::byte*>(&mine), size));
    lanes.back().available = &size;
  }
  if (!first())
    lanes.push_back(
      lane(true, false, reinterpret_cast<std::byte*>(&theirs), size));
  std::vector<Lane*> all;
  for (Lane& each : lanes)
    all.push_back(&each);
  run_lanes(all, waits());
  if (!first() && !(theirs == mine))
    throw FailureError({Errc::bug, chain_member(spec_, spec_.index),
                        "called " + to_string(mine) + ", its left neighbour "
                          + to_string(theirs),
                        ""});
}

/// Receives partial sums from the left, sends sums to the right, receives
/// totals from the right, sends totals to the left, all in place: a total
/// arrives only for what was sent.
void ChainCollectives::sum_chain(std::byte* data, std::size_t count,
                                 DType dtype) {
  const std::size_t width = size_bytes(dtype), bytes = count * width;
  std::size_t summed = first() ? bytes : 0; // bytes ready for the right
  std::vector<std::byte> stage(first() ? 0 : kChainChunkBytes);
  std::size_t filled = 0;
  Lane partial_in, partial_out, total_in, total_out;
  std::vector<Lane*> lanes;
  if (!first()) {
    partial_in = lane(true, false, nullptr, bytes);
    partial_in.next = [&] {
      const std::size_t left = bytes - summed - filled;
      return std::pair(stage.data() + filled,
                       std::min(stage.size() - filled, left));
    };
    partial_in.received = [&](std::size_t came) {
      filled += came;
      const std::size_t whole = filled / width;
      add_before(stage.data(), data + summed, whole, dtype);
      summed += whole * width;
      filled -= whole * width;
      std::memmove(stage.data(), stage.data() + whole * width, filled);
    };
    lanes.push_back(&partial_in);
  }
  if (!last()) {
    partial_out = lane(false, true, data, bytes);
    partial_out.available = &summed;
    total_in = lane(false, false, data, bytes);
    lanes.push_back(&partial_out);
    lanes.push_back(&total_in);
  }
  if (!first()) {
    total_out = lane(true, true, data, bytes);
    total_out.available = last() ? &summed : &total_in.done;
    lanes.push_back(&total_out);
  }
  run_lanes(lanes, waits());
}

/// Sums like sum_chain; bf16 is sent as fp32, so that it is rounded once, as in
/// every transport.
void ChainCollectives::sum_any(std::byte* data, std::size_t count,
                               DType dtype) {
  if (dtype != DType::bf16)
    return sum_chain(data, count, dtype);
  std::vector<float> wide(std::min(count, kWideElements));
  for (std::size_t done = 0; done < count; done += kWideElements) {
    const std::size_t part = std::min(kWideElements, count - done);
    std::byte* narrow = data + done * size_bytes(dtype);
    widen_bf16(narrow, wide.data(), part);
    sum_chain(reinterpret_cast<std::byte*>(wide.data()), part, DType::f32);
    narrow_bf16(wide.data(), narrow, part);
  }
}

/// Sends away from `root` in both directions.
void ChainCollectives::send_from(std::byte* data, std::size_t bytes,
                                 std::uint32_t root) {
  const bool is_root = spec_.index == root;
  Lane in;
  std::vector<Lane> out;
  if (!is_root)
    in = lane(spec_.index > root, false, data, bytes);
  if (!first() && spec_.index <= root)
    out.push_back(lane(true, true, data, bytes));
  if (!last() && spec_.index >= root)
    out.push_back(lane(false, true, data, bytes));
  std::vector<Lane*> lanes;
  if (!is_root)
    lanes.push_back(&in);
  for (Lane& each : out) {
    each.available = is_root ? &bytes : &in.done;
    lanes.push_back(&each);
  }
  run_lanes(lanes, waits());
}

void ChainCollectives::do_all_reduce(std::byte* data, const Call& call) {
  guarded(call, [&] {
    agree(GroupOperation::all_reduce, call);
    sum_any(data, call.count, call.dtype);
  });
}

void ChainCollectives::do_all_gather(const std::byte* mine, std::byte* all,
                                     const Call& call) {
  std::byte* place = all + spec_.index * call.bytes();
  if (place != mine && call.count != 0)
    std::memcpy(place, mine, call.bytes());
  guarded(call, [&] {
    agree(GroupOperation::all_gather, call);
    for (std::uint32_t root = 0; root < size(); ++root)
      send_from(all + root * call.bytes(), call.bytes(), root);
  });
}

void ChainCollectives::do_reduce_scatter(const std::byte* all, std::byte* mine,
                                         const Call& call) {
  std::vector<std::byte> sums(all, all + size() * call.bytes());
  guarded(call, [&] {
    agree(GroupOperation::reduce_scatter, call);
    sum_any(sums.data(), size() * call.count, call.dtype);
  });
  if (call.count != 0)
    std::memcpy(mine, sums.data() + spec_.index * call.bytes(), call.bytes());
}

void ChainCollectives::do_broadcast(std::byte* data, const Call& call) {
  guarded(call, [&] {
    agree(GroupOperation::broadcast, call);
    send_from(data, call.bytes(), call.root);
  });
}

void ChainCollectives::do_barrier(const Call& call) {
  guarded(call, [&] {
    agree(GroupOperation::barrier, call);
    std::int32_t nothing = 0;
    sum_chain(reinterpret_cast<std::byte*>(&nothing), 1, DType::i32);
  });
}

} // namespace troupe::net
