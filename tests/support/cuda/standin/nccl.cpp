// NCCL for the stand-in of CUDA's runtime, between the GPUs of one process and,
// by way of a hub, of several. A collective is work of all members' streams: it
// runs on the host when all have arrived, in the order of ranks, and members in
// a group of calls do not wait for each other's order. NCCL's header is not
// included: toolkits lack it, and the numbers are those of nccl.h 2. A captured
// collective meets anew whenever its graph is launched, and only captured ones
// of others: NCCL wants all members to capture a call, or none.
#include "nccl_between.hpp"
#include "nccl_numbers.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

using namespace troupe::standin;

namespace {

constexpr int ok = 0;
constexpr int system_error = 2;
constexpr int invalid_argument = 4;
constexpr int invalid_usage = 5;

struct Id {
  char bytes[128];
};

/// A call of a group, until all members have come.
struct Round {
  Meeting meeting;
  std::map<int, Call> calls; ///< by rank
};

struct Group {
  int size = 0;
  int size_here = 0; ///< members of this process
  bool is_aborted = false;
  std::map<std::string, Round> rounds; ///< by what is called, and how often
};

struct Member {
  std::shared_ptr<Group> group;
  int rank = 0;
  int device = 0;
  FarMember link;
  std::map<std::string, long> calls; ///< by what is called
};

/// A member's part in a call, kept until its group of calls ends.
struct Pending {
  Member* member;
  std::size_t members;
  FarCall call;
  cudaStream_t stream;
};

std::mutex& nccl_mutex() {
  static auto& only = *new std::mutex;
  return only;
}
std::map<std::string, std::shared_ptr<Group>>& groups() {
  static auto& only = *new std::map<std::string, std::shared_ptr<Group>>;
  return only;
}
thread_local int open_groups = 0;
thread_local std::vector<Pending> pending;

/// Returns whether members of the group are in other processes.
bool is_between_processes(Member& member) {
  member.link.wait_until_joined();
  const std::lock_guard lock(nccl_mutex());
  return member.group->size_here < member.group->size;
}

/// Takes the part of one member, whose stream had arrived when the group of
/// calls began. An aborted group lets it pass.
int take_part(const Pending& part, const Seat& seat) {
  Member& member = *part.member;
  if (is_between_processes(member)) {
    member.link.call(part.call, seat);
    return ok;
  }
  const std::lock_guard lock(nccl_mutex());
  Group& group = *member.group;
  if (group.is_aborted) {
    let_pass(seat.end);
    return system_error;
  }
  const std::string& name = part.call.name;
  const long index = member.calls[name]++;
  const std::string key = name + ' ' + std::to_string(index);
  Round& round = group.rounds[key];
  round.calls[member.rank] = part.call.memory;
  round.meeting.come(seat);
  count_launch(name);
  if (round.calls.size() < part.members)
    return ok;
  round.meeting.start(
    {name, ranges_of(part.call),
     [calls = round.calls, body = part.call.body] { body(calls); }});
  group.rounds.erase(key);
  return ok;
}

/// Makes a call part of the graph that its stream captures. Of groups of calls,
/// whose order does not count, a graph would make an order.
int capture(Pending part) {
  if (pending.size() > 1)
    return invalid_usage;
  const std::string name = part.call.name;
  part.call.name += " in a graph";
  const cudaStream_t stream = part.stream;
  const int device = part.member->device;
  const auto meets
    = [part = std::move(part)](const Seat& seat) { take_part(part, seat); };
  return enqueue(stream, device, {name, {}, {}, meets}) == cudaSuccess
           ? ok
           : system_error;
}

int take_part_now(const Pending& part, const Place& arrival) {
  const Place end = stop_at(part.stream, part.member->device, part.call.name);
  return end == nullptr ? system_error : take_part(part, {arrival, end});
}

int end_group() {
  std::map<cudaStream_t, Place> arrivals;
  int result = ok;
  for (const Pending& part : pending)
    if (is_capturing(part.stream, part.member->device))
      result = std::max(result, capture(part));
    else if (!arrivals.contains(part.stream))
      arrivals[part.stream] = end_of(part.stream, part.member->device);
  for (const Pending& part : pending)
    if (arrivals.contains(part.stream))
      result = std::max(result, take_part_now(part, arrivals[part.stream]));
  pending.clear();
  return result;
}

int call(Pending part) {
  pending.push_back(std::move(part));
  return open_groups > 0 ? ok : end_group();
}

Member* member_of(void* communicator) {
  return static_cast<Member*>(communicator);
}

int collective(const char* name, const void* from, std::size_t from_bytes,
               void* to, std::size_t to_bytes, void* communicator,
               cudaStream_t stream, JoinCalls body) {
  Member* member = member_of(communicator);
  return call({member,
               static_cast<std::size_t>(member->group->size),
               {.name = name,
                .memory = {from, to},
                .from_bytes = from_bytes,
                .to_bytes = to_bytes,
                .body = std::move(body)},
               stream});
}

int point_to_point(const void* from, void* to, std::size_t bytes, int sender,
                   int receiver, Member* member, cudaStream_t stream) {
  return call({member,
               2,
               {.name = "ncclSend " + std::to_string(sender) + " to "
                        + std::to_string(receiver),
                .memory = {from, to},
                .from_bytes = from == nullptr ? 0 : bytes,
                .to_bytes = to == nullptr ? 0 : bytes,
                .sender = sender,
                .receiver = receiver,
                .body =
                  [=](const std::map<int, Call>& calls) {
                    std::memcpy(calls.at(receiver).to, calls.at(sender).from,
                                bytes);
                  }},
               stream});
}

} // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22809;
  return ok;
}
const char* ncclGetErrorString(int) {
  return "error of the stand-in for NCCL";
}
const char* ncclGetLastError(void*) {
  return "";
}
int ncclGetUniqueId(Id* id) {
  const std::string name = troupe::fake_nccl::open_hub();
  *id = {};
  name.copy(id->bytes, sizeof id->bytes - 1);
  return name.empty() ? system_error : ok;
}
int ncclCommInitRank(void** made, int size, Id id, int rank) {
  const std::lock_guard lock(nccl_mutex());
  auto& group = groups()[id.bytes];
  if (!group)
    group = std::make_shared<Group>();
  group->size = size;
  ++group->size_here;
  // kept: a thread may use it
  auto* member = new Member{group, rank, 0, {id.bytes, size, rank}, {}};
  cudaGetDevice(&member->device);
  *made = member;
  return ok;
}
int ncclCommInitRankConfig(void** made, int size, Id id, int rank, void*) {
  return ncclCommInitRank(made, size, id, rank);
}
int ncclCommAbort(void* communicator) {
  member_of(communicator)->link.abort();
  const std::lock_guard lock(nccl_mutex());
  Group& group = *member_of(communicator)->group;
  group.is_aborted = true;
  for (auto& [key, round] : group.rounds)
    round.meeting.abandon();
  group.rounds.clear();
  return ok;
}
int ncclCommFinalize(void*) {
  return ok;
}
int ncclCommDestroy(void*) {
  return ok;
}
int ncclCommCount(void* communicator, int* count) {
  *count = member_of(communicator)->group->size;
  return ok;
}
int ncclCommUserRank(void* communicator, int* rank) {
  *rank = member_of(communicator)->rank;
  return ok;
}
int ncclCommCuDevice(void* communicator, int* device) {
  *device = member_of(communicator)->device;
  return ok;
}
int ncclCommGetAsyncError(void* communicator, int* error) {
  const std::lock_guard lock(nccl_mutex());
  *error = member_of(communicator)->group->is_aborted
             ? system_error
             : member_of(communicator)->link.state();
  return ok;
}
int ncclMemAlloc(void** data, size_t size_bytes) {
  return cudaMalloc(data, size_bytes) == cudaSuccess ? ok : system_error;
}
int ncclMemFree(void* data) {
  return cudaFree(data) == cudaSuccess ? ok : system_error;
}
int ncclGroupStart() {
  ++open_groups;
  return ok;
}
int ncclGroupEnd() {
  if (open_groups == 0)
    return invalid_usage;
  return --open_groups > 0 ? ok : end_group();
}

int ncclAllReduce(const void* from, void* to, size_t count, int type,
                  int operation, void* communicator, cudaStream_t stream) {
  if (!can_reduce(type, operation))
    return invalid_argument;
  const std::size_t bytes = count * size_of(type);
  return collective("ncclAllReduce", from, bytes, to, bytes, communicator,
                    stream, [=](const std::map<int, Call>& calls) {
                      const auto all = reduced(calls, count, type, operation);
                      for (const auto& [rank, each] : calls)
                        std::memcpy(each.to, all.data(), all.size());
                    });
}
int ncclAllGather(const void* from, void* to, size_t count, int type,
                  void* communicator, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  const auto size
    = static_cast<std::size_t>(member_of(communicator)->group->size);
  return collective("ncclAllGather", from, bytes, to, bytes * size,
                    communicator, stream,
                    [=](const std::map<int, Call>& calls) {
                      std::vector<char> all;
                      for (const auto& [rank, each] : calls) {
                        const auto* mine = static_cast<const char*>(each.from);
                        all.insert(all.end(), mine, mine + bytes);
                      }
                      for (const auto& [rank, each] : calls)
                        std::memcpy(each.to, all.data(), all.size());
                    });
}
int ncclReduceScatter(const void* from, void* to, size_t count, int type,
                      int operation, void* communicator, cudaStream_t stream) {
  if (!can_reduce(type, operation))
    return invalid_argument;
  const std::size_t bytes = count * size_of(type);
  const auto size
    = static_cast<std::size_t>(member_of(communicator)->group->size);
  return collective(
    "ncclReduceScatter", from, bytes * size, to, bytes, communicator, stream,
    [=](const std::map<int, Call>& calls) {
      const auto all = reduced(calls, count * calls.size(), type, operation);
      for (const auto& [rank, each] : calls)
        std::memcpy(each.to,
                    all.data() + static_cast<std::size_t>(rank) * bytes, bytes);
    });
}
int ncclBroadcast(const void* from, void* to, size_t count, int type, int root,
                  void* communicator, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  return collective("ncclBroadcast", from, bytes, to, bytes, communicator,
                    stream, [=](const std::map<int, Call>& calls) {
                      const auto* sent
                        = static_cast<const char*>(calls.at(root).from);
                      const std::vector<char> all(sent, sent + bytes);
                      for (const auto& [rank, each] : calls)
                        std::memcpy(each.to, all.data(), bytes);
                    });
}
int ncclSend(const void* from, size_t count, int type, int peer,
             void* communicator, cudaStream_t stream) {
  Member* member = member_of(communicator);
  return point_to_point(from, nullptr, count * size_of(type), member->rank,
                        peer, member, stream);
}
int ncclRecv(void* to, size_t count, int type, int peer, void* communicator,
             cudaStream_t stream) {
  Member* member = member_of(communicator);
  return point_to_point(nullptr, to, count * size_of(type), peer, member->rank,
                        member, stream);
}
}
