#include "net/collectives/local_collectives.hpp"

#include "net/collectives/reduce.hpp"

#include <cstring>
#include <thread>

namespace troupe::net {

namespace {

/// Scope in which this member accesses others' memory; no member leaves a
/// failed call (and frees its buffers) before all such scopes have ended.
class Touching {
public:
  Touching(GroupControl& control, const GroupWaiter& waiter)
    : control_(control) {
    control_.touching.fetch_add(1);
    if (!waiter.aborted())
      return;
    control_.touching.fetch_sub(1);
    waiter.throw_failure();
  }
  ~Touching() {
    control_.touching.fetch_sub(1);
  }
  Touching(const Touching&) = delete;
  Touching& operator=(const Touching&) = delete;

private:
  GroupControl& control_;
};

void local_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from && bytes != 0)
    std::memcpy(to, from, bytes);
}

} // namespace

LocalCollectives::LocalCollectives(GroupSpec spec,
                                   std::shared_ptr<LocalGroup> group)
  : HostCollectives(std::move(spec)),
    group_(std::move(group)),
    waiter_(group_->control, spec_, nullptr) {}

LocalCollectives::~LocalCollectives() {
  abort({Errc::peer_lost, "group '" + spec_.name + "'",
         "rank " + std::to_string(spec_.index) + " left the group", ""});
}

std::optional<Failure> LocalCollectives::failure() {
  return waiter_.failure();
}

void LocalCollectives::abort(const Failure& failure) noexcept {
  waiter_.abort(failure);
}

template <class Work>
void LocalCollectives::together(GroupOperation operation, const Call& call,
                                LocalGroup::Place mine, Work work) {
  try {
    waiter_.begin_call(
      make_call_mark(operation, call.count, call.dtype, call.root, call.name));
    group_->places[spec_.index] = mine;
    waiter_.barrier();
    {
      const Touching touching(group_->control, waiter_);
      work();
    }
    waiter_.barrier();
  } catch (const FailureError&) {
    while (group_->control.touching.load() != 0)
      std::this_thread::yield(); // at most as long as one share of the work
    throw;
  }
}

void LocalCollectives::do_all_reduce(std::byte* data, const Call& call) {
  together(GroupOperation::all_reduce, call, {data, data}, [&] {
    const std::size_t width = size_bytes(call.dtype);
    const ElementRange mine
      = part_of(call.count, spec_.index, spec_.members.size(), width);
    std::vector<const std::byte*> sources;
    std::vector<std::byte*> targets;
    for (const LocalGroup::Place& place : group_->places) {
      sources.push_back(place.source + mine.first * width);
      targets.push_back(place.target + mine.first * width);
    }
    sum_in_rank_order(sources, targets, mine.size(), call.dtype);
  });
}

void LocalCollectives::do_all_gather(const std::byte* mine, std::byte* all,
                                     const Call& call) {
  together(GroupOperation::all_gather, call, {mine, all}, [&] {
    for (std::size_t rank = 0; rank < group_->places.size(); ++rank)
      local_copy(all + rank * call.bytes(), group_->places[rank].source,
                 call.bytes());
  });
}

void LocalCollectives::do_reduce_scatter(const std::byte* all, std::byte* mine,
                                         const Call& call) {
  together(GroupOperation::reduce_scatter, call, {all, mine}, [&] {
    std::vector<const std::byte*> sources;
    for (const LocalGroup::Place& place : group_->places)
      sources.push_back(place.source + spec_.index * call.bytes());
    std::byte* const targets[] = {mine};
    sum_in_rank_order(sources, targets, call.count, call.dtype);
  });
}

void LocalCollectives::do_broadcast(std::byte* data, const Call& call) {
  together(GroupOperation::broadcast, call, {data, data}, [&] {
    local_copy(data, group_->places[call.root].source, call.bytes());
  });
}

void LocalCollectives::do_barrier(const Call& call) {
  waiter_.begin_call(
    make_call_mark(GroupOperation::barrier, 0, call.dtype, 0, call.name));
  waiter_.barrier();
}

} // namespace troupe::net
