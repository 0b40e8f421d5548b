// NCCL and CUDA's runtime with the interface that nccl_library.hpp needs, over
// threads of one process: everything a GPU would do is done on the host, when
// the last member calls. Memory from `fake_gpu_take` counts as a GPU's. A
// shared library of its own, so that the program finds it in the same way as
// the real ones.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Id {
  char bytes[128];
};

struct Call {
  const void* from;
  void* to;
};

struct Group {
  std::vector<Call> calls; ///< calls of the members that have arrived
  std::size_t came = 0;
  std::uint64_t done = 0; ///< completed calls of the whole group
  bool aborted = false;
};

struct Member {
  Group* group;
  int rank;
  std::uint64_t calls = 0;
};

std::mutex mutex;
std::map<std::string, Group> groups;
std::deque<Member> members; // addresses are stable, also after an abort
std::map<const std::byte*, std::size_t> gpu_blocks;
thread_local Member* last_member = nullptr;
thread_local int last_error = 0; // of CUDA
std::uint64_t next_id = 0;

std::size_t size_of(int type) {
  if (type == 1)
    return 1;
  return type == 4 || type == 8 ? 8 : (type == 9 ? 2 : 4);
}

template <class T>
void add(void* to, const void* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    static_cast<T*>(to)[i] += static_cast<const T*>(from)[i];
}

void add_all(void* to, const void* from, std::size_t count, int type) {
  if (type == 2)
    add<std::int32_t>(to, from, count);
  else if (type == 4)
    add<std::int64_t>(to, from, count);
  else if (type == 8)
    add<double>(to, from, count);
  else
    add<float>(to, from, count);
}

/// Joins a call; the last member to arrive does the work of all.
int come(Member* member, Call call,
         const std::function<void(std::vector<Call>&)>& work) {
  const std::lock_guard lock(mutex);
  Group& group = *member->group;
  if (group.aborted)
    return 6;
  group.calls[static_cast<std::size_t>(member->rank)] = call;
  ++member->calls;
  last_member = member;
  if (++group.came < group.calls.size())
    return 0;
  work(group.calls);
  group.came = 0;
  ++group.done;
  return 0;
}

/// Joins one message of a group of two: the sender has `from`, the receiver
/// `to`.
int pass_on(Member* member, Call call, std::size_t bytes, int peer) {
  if (peer != 1 - member->rank)
    return 4;
  return come(member, call, [bytes](std::vector<Call>& calls) {
    const std::size_t sender = calls[0].from != nullptr ? 0 : 1;
    std::memcpy(calls[1 - sender].to, calls[sender].from, bytes);
  });
}

std::vector<std::byte> sum_of(const std::vector<Call>& calls, std::size_t count,
                              int type) {
  const std::size_t bytes = count * size_of(type);
  std::vector<std::byte> sum(bytes);
  std::memcpy(sum.data(), calls[0].from, bytes);
  for (std::size_t i = 1; i < calls.size(); ++i)
    add_all(sum.data(), calls[i].from, count, type);
  return sum;
}

} // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22809;
  return 0;
}
const char* ncclGetErrorString(int) {
  return "fake error";
}
int ncclGetUniqueId(Id* id) {
  const std::lock_guard lock(mutex);
  *id = {};
  const std::string name = "group " + std::to_string(next_id++);
  name.copy(id->bytes, sizeof id->bytes - 1);
  return 0;
}
int ncclCommInitRank(void** made, int size, Id id, int rank) {
  const std::lock_guard lock(mutex);
  Group& group = groups[id.bytes];
  group.calls.resize(static_cast<std::size_t>(size));
  *made = &members.emplace_back(Member{&group, rank});
  return 0;
}
int ncclCommAbort(void* communicator) {
  const std::lock_guard lock(mutex);
  static_cast<Member*>(communicator)->group->aborted = true;
  return 0; // kept: a thread may still use its stream
}
int ncclCommGetAsyncError(void*, int* error) {
  *error = 0;
  return 0;
}
int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int,
                  void* communicator, void*) {
  return come(static_cast<Member*>(communicator), {from, to},
              [&](std::vector<Call>& calls) {
                const auto sum = sum_of(calls, count, type);
                for (const Call& call : calls)
                  std::memcpy(call.to, sum.data(), sum.size());
              });
}
int ncclAllGather(const void* from, void* to, std::size_t count, int type,
                  void* communicator, void*) {
  return come(static_cast<Member*>(communicator), {from, to},
              [&](std::vector<Call>& calls) {
                const std::size_t bytes = count * size_of(type);
                std::vector<std::byte> all(bytes * calls.size());
                for (std::size_t i = 0; i < calls.size(); ++i)
                  std::memcpy(all.data() + i * bytes, calls[i].from, bytes);
                for (const Call& call : calls)
                  std::memcpy(call.to, all.data(), all.size());
              });
}
int ncclReduceScatter(const void* from, void* to, std::size_t count, int type,
                      int, void* communicator, void*) {
  return come(static_cast<Member*>(communicator), {from, to},
              [&](std::vector<Call>& calls) {
                const std::size_t bytes = count * size_of(type);
                const auto sum = sum_of(calls, count * calls.size(), type);
                for (std::size_t i = 0; i < calls.size(); ++i)
                  std::memcpy(calls[i].to, sum.data() + i * bytes, bytes);
              });
}
int ncclBroadcast(const void* from, void* to, std::size_t count, int type,
                  int root, void* communicator, void*) {
  return come(static_cast<Member*>(communicator), {from, to},
              [&](std::vector<Call>& calls) {
                const std::size_t bytes = count * size_of(type);
                const void* source = calls[static_cast<std::size_t>(root)].from;
                std::vector<std::byte> data(bytes);
                std::memcpy(data.data(), source, bytes);
                for (const Call& call : calls)
                  std::memcpy(call.to, data.data(), bytes);
              });
}

int ncclSend(const void* from, std::size_t count, int type, int peer,
             void* communicator, void*) {
  return pass_on(static_cast<Member*>(communicator), {from, nullptr},
                 count * size_of(type), peer);
}
int ncclRecv(void* to, std::size_t count, int type, int peer,
             void* communicator, void*) {
  return pass_on(static_cast<Member*>(communicator), {nullptr, to},
                 count * size_of(type), peer);
}

int cudaSetDevice(int) {
  return 0;
}
int cudaStreamCreateWithFlags(void** made, unsigned) {
  *made = &groups;
  return 0;
}
int cudaStreamDestroy(void*) {
  return 0;
}
/// Returns not ready (600) until the group has done as many calls as this
/// member.
int cudaStreamQuery(void*) {
  const std::lock_guard lock(mutex);
  const Member* member = last_member;
  if (member == nullptr || member->group->done >= member->calls)
    return 0;
  return last_error = 600;
}
int cudaGetLastError() {
  return std::exchange(last_error, 0);
}
int cudaPointerGetAttributes(int* kind, const void* pointer) {
  const std::lock_guard lock(mutex);
  const auto* at = static_cast<const std::byte*>(pointer);
  auto found = gpu_blocks.upper_bound(at);
  *kind = 0;
  if (found == gpu_blocks.begin())
    return 0;
  --found;
  if (at < found->first + found->second)
    *kind = 3;
  return 0;
}

/// Returns how many groups have been made so far.
std::uint64_t fake_nccl_groups() {
  const std::lock_guard lock(mutex);
  return next_id;
}
/// Sets which memory counts as a GPU's.
void fake_gpu_memory(const std::byte* data, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  gpu_blocks[data] = bytes;
}
}
