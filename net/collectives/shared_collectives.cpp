#include "net/collectives/shared_collectives.hpp"

#include "config/base/text_hash.hpp"
#include "net/base/buffer.hpp"
#include "net/base/defaults.hpp"
#include "net/collectives/reduce.hpp"

#include <fmt/format.h>

#include <cstring>
#include <vector>

namespace troupe::net {

namespace {

/// Size up to which every member sums everything itself: one barrier instead of
/// two.
constexpr std::size_t kSmallSumBytes = 16 << 10;

std::size_t control_bytes() {
  constexpr std::size_t page = 4096;
  return (sizeof(GroupControl) + page - 1) / page * page;
}

std::size_t segment_bytes(std::size_t members) {
  return control_bytes() + (members + 1) * 2 * kSharedChunkBytes;
}

void shared_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from && bytes != 0)
    std::memcpy(to, from, bytes);
}

/// Copies `range` except for the part `hole` inside it.
void copy_around(std::byte* to, const std::byte* from, ElementRange hole,
                 std::size_t count, std::size_t width) {
  shared_copy(to, from, hole.first * width);
  shared_copy(to + hole.last * width, from + hole.last * width,
              (count - hole.last) * width);
}

} // namespace

std::string segment_name(const std::string& group) {
  return fmt::format("/troupe-{:016x}", text_hash(group));
}

SharedCollectives::SharedCollectives(GroupSpec spec,
                                     std::shared_ptr<PeerProcesses> processes)
  : HostCollectives(std::move(spec)),
    memory_(segment_name(spec_.name), segment_bytes(spec_.members.size())),
    waiter_(*reinterpret_cast<GroupControl*>(memory_.bytes().data()), spec_,
            std::move(processes)) {
  if (waiter_.attach())
    memory_.unlink();
}

SharedCollectives::~SharedCollectives() {
  abort({Errc::peer_lost, "group '" + spec_.name + "'",
         "rank " + std::to_string(spec_.index) + " left the group", ""});
}

std::optional<Failure> SharedCollectives::failure() {
  return waiter_.failure();
}

void SharedCollectives::abort(const Failure& failure) noexcept {
  waiter_.abort(failure);
}

std::byte* SharedCollectives::staging(std::size_t rank,
                                      std::size_t chunk) const {
  return memory_.bytes().data() + control_bytes()
         + (2 * rank + chunk % 2) * kSharedChunkBytes;
}

std::byte* SharedCollectives::result(std::size_t chunk) const {
  return staging(spec_.members.size(), chunk);
}

void SharedCollectives::begin(GroupOperation operation, const Call& call) {
  waiter_.begin_call(
    make_call_mark(operation, call.count, call.dtype, call.root, call.name));
}

void SharedCollectives::do_all_reduce(std::byte* data, const Call& call) {
  begin(GroupOperation::all_reduce, call);
  if (call.bytes() <= kSmallSumBytes)
    reduce_small(data, call);
  else
    reduce_in_chunks(data, call);
}

/// no barrier at the end: the next call stages at the other place
void SharedCollectives::reduce_small(std::byte* data, const Call& call) {
  shared_copy(staging(spec_.index, turn_), data, call.bytes());
  waiter_.barrier();
  std::vector<const std::byte*> sources;
  for (std::size_t rank = 0; rank < spec_.members.size(); ++rank)
    sources.push_back(staging(rank, turn_));
  std::byte* const targets[] = {data};
  sum_in_rank_order(sources, targets, call.count, call.dtype);
  ++turn_;
}

/// In phase p: copies out chunk p-2, sums this member's part of chunk p-1,
/// stages chunk p. A place is overwritten at least one barrier after its last
/// reader.
void SharedCollectives::reduce_in_chunks(std::byte* data, const Call& call) {
  const std::size_t width = size_bytes(call.dtype);
  const std::size_t each = kSharedChunkBytes / width;
  const std::size_t chunks = (call.count + each - 1) / each;
  const auto count_of = [&](std::size_t chunk) {
    return std::min(each, call.count - chunk * each);
  };
  const auto part = [&](std::size_t chunk) {
    return part_of(count_of(chunk), spec_.index, spec_.members.size(), width);
  };
  const auto sum = [&](std::size_t chunk) {
    const ElementRange mine = part(chunk);
    std::byte* own = data + (chunk * each + mine.first) * width;
    std::vector<const std::byte*> sources;
    for (std::size_t rank = 0; rank < spec_.members.size(); ++rank)
      sources.push_back(rank == spec_.index
                          ? own
                          : staging(rank, turn_ + chunk) + mine.first * width);
    std::byte* const targets[] = {own, result(chunk) + mine.first * width};
    sum_in_rank_order(sources, targets, mine.size(), call.dtype);
  };
  for (std::size_t phase = 0; phase < chunks + 2; ++phase) {
    if (phase >= 2)
      copy_around(data + (phase - 2) * each * width, result(phase - 2),
                  part(phase - 2), count_of(phase - 2), width);
    if (phase >= 1 && phase <= chunks)
      sum(phase - 1);
    if (phase < chunks)
      copy_around(staging(spec_.index, turn_ + phase),
                  data + phase * each * width, part(phase), count_of(phase),
                  width);
    if (phase <= chunks)
      waiter_.barrier();
  }
  turn_ += chunks;
}

template <class Stage, class Use>
void SharedCollectives::staged(const Call& call, std::size_t chunk_elements,
                               Stage stage, Use use) {
  const std::size_t chunks = std::max<std::size_t>(
    1, (call.count + chunk_elements - 1) / chunk_elements);
  const auto range = [&](std::size_t chunk) {
    return ElementRange{chunk * chunk_elements,
                        std::min(call.count, (chunk + 1) * chunk_elements)};
  };
  for (std::size_t phase = 0; phase <= chunks; ++phase) {
    if (phase > 0)
      use(turn_ + phase - 1, range(phase - 1));
    if (phase == chunks)
      break;
    stage(turn_ + phase, range(phase));
    waiter_.barrier();
  }
  turn_ += chunks;
}

void SharedCollectives::do_all_gather(const std::byte* mine, std::byte* all,
                                      const Call& call) {
  begin(GroupOperation::all_gather, call);
  const std::size_t width = size_bytes(call.dtype);
  shared_copy(all + spec_.index * call.bytes(), mine, call.bytes());
  staged(
    call, kSharedChunkBytes / width,
    [&](std::size_t place, ElementRange range) {
      shared_copy(staging(spec_.index, place), mine + range.first * width,
                  range.size() * width);
    },
    [&](std::size_t place, ElementRange range) {
      for (std::size_t rank = 0; rank < spec_.members.size(); ++rank)
        if (rank != spec_.index)
          shared_copy(all + rank * call.bytes() + range.first * width,
                      staging(rank, place), range.size() * width);
    });
}

void SharedCollectives::do_reduce_scatter(const std::byte* all, std::byte* mine,
                                          const Call& call) {
  begin(GroupOperation::reduce_scatter, call);
  const std::size_t width = size_bytes(call.dtype);
  const std::size_t members = spec_.members.size();
  const std::size_t part_bytes
    = kSharedChunkBytes / members / kBufferAlignment * kBufferAlignment;
  staged(
    call, part_bytes / width,
    [&](std::size_t place, ElementRange range) {
      for (std::size_t rank = 0; rank < members; ++rank)
        if (rank != spec_.index)
          shared_copy(staging(spec_.index, place) + rank * part_bytes,
                      all + rank * call.bytes() + range.first * width,
                      range.size() * width);
    },
    [&](std::size_t place, ElementRange range) {
      const std::byte* own
        = all + spec_.index * call.bytes() + range.first * width;
      std::vector<const std::byte*> sources;
      for (std::size_t rank = 0; rank < members; ++rank)
        sources.push_back(rank == spec_.index
                            ? own
                            : staging(rank, place) + spec_.index * part_bytes);
      std::byte* const targets[] = {mine + range.first * width};
      sum_in_rank_order(sources, targets, range.size(), call.dtype);
    });
}

void SharedCollectives::do_broadcast(std::byte* data, const Call& call) {
  begin(GroupOperation::broadcast, call);
  const std::size_t width = size_bytes(call.dtype);
  const bool sending = call.root == spec_.index;
  staged(
    call, kSharedChunkBytes / width,
    [&](std::size_t place, ElementRange range) {
      if (sending)
        shared_copy(staging(call.root, place), data + range.first * width,
                    range.size() * width);
    },
    [&](std::size_t place, ElementRange range) {
      if (!sending)
        shared_copy(data + range.first * width, staging(call.root, place),
                    range.size() * width);
    });
}

void SharedCollectives::do_barrier(const Call& call) {
  begin(GroupOperation::barrier, call);
  waiter_.barrier();
}

} // namespace troupe::net
