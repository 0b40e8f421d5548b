// NCCL and CUDA's runtime with the interface that nccl_library.hpp needs, over
// ranks of one process or of several (rank_hub.hpp): everything a GPU would do
// is done on the host. A stream is not ready while calls on it wait for others.
// Memory from cudaMalloc and `fake_gpu_memory` counts as a GPU's. A shared
// library of its own, so that programs find it in the same way as the real
// ones. TROUPE_FAKE_NCCL_VERSION is the version that it says it is (22809).
#include "fake_stream.hpp"
#include "rank_hub.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

using namespace troupe::fake_nccl;

namespace {

struct Id {
  char bytes[128];
};

/// As nccl.h has had it since 2.14; later fields are not read.
struct Config {
  std::size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
};

std::mutex mutex;
std::map<const std::byte*, std::size_t> gpu_blocks;
thread_local int last_error = 0;     // of CUDA
constexpr int capture_is_active = 1; // of cudaStreamCaptureStatus
thread_local int capture_status = 0; // of the thread's streams
thread_local std::vector<std::function<int()>> captured; // the last capture

/// Calls of a thread between ncclGroupStart and ncclGroupEnd. They start at
/// once: calls never wait for each other here.
struct OpenGroup {
  int depth = 0;
  int result = ok;
  std::map<const Stream*, std::size_t> calls;
};
thread_local OpenGroup open_group;

std::uint64_t num_ids = 0;

int version_of_library() {
  const char* set = std::getenv("TROUPE_FAKE_NCCL_VERSION");
  return set == nullptr ? 22809 : std::atoi(set);
}

Stream& stream_of(void* stream) {
  static auto& legacy = *new Stream;
  return stream == nullptr ? legacy : *static_cast<Stream*>(stream);
}

RankLink* link_of(void* communicator) {
  return static_cast<RankLink*>(communicator);
}

/// Returns whether a send or receive would wait for one before it on its
/// stream, which waits for the other member's: only a group has them together,
/// or they go the same way.
bool would_wait(const RankCall& call, const Stream& on, std::size_t pending) {
  return call.what == What::pass_on && pending > open_group.calls[&on];
}

/// Sends a call of the stream, whose result goes to `to`; keeps it if the
/// stream is captured.
int start(void* communicator, void* stream, const RankCall& call,
          const void* from, void* to) {
  if (capture_status == capture_is_active) {
    captured.push_back(
      [=] { return start(communicator, stream, call, from, to); });
    return ok;
  }
  Stream& on = stream_of(stream);
  Direction direction;
  if (call.what == What::pass_on)
    direction = {communicator, call.root, call.other};
  if (would_wait(call, on, on.begin(direction))) {
    on.end();
    return invalid_usage;
  }
  if (open_group.depth > 0)
    ++open_group.calls[&on];
  const int sent
    = link_of(communicator)
        ->send(call, from,
               [to, &on](const std::byte* result, std::size_t bytes) {
                 if (bytes > 0)
                   std::memcpy(to, result, bytes);
                 on.end();
               });
  if (sent != ok) {
    on.end();
    return sent;
  }
  return open_group.result
         = link_of(communicator)->place().blocks ? ok : in_progress;
}

bool can_add(int type, int operation) {
  return operation == 0 && (type == 2 || type == 4 || type == 7 || type == 8);
}

RankCall call_of(What what, int type, std::size_t count, std::size_t sent) {
  return {.what = what,
          .type = type,
          .count = count,
          .bytes = sent * bytes_of_type(type)};
}

/// Joins one message: the sender has `from`, the receiver `to`.
int pass_on(int sender, int receiver, RankCall call, const void* from, void* to,
            void* communicator, void* stream) {
  call.root = sender;
  call.other = receiver;
  return start(communicator, stream, call, from, to);
}

} // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = version_of_library();
  return ok;
}
const char* ncclGetErrorString(int result) {
  switch (result) {
  case invalid_argument:
    return "invalid argument";
  case invalid_usage:
    return "invalid usage";
  case remote_error:
    return "remote process exited or there was a network error";
  default:
    return "fake error";
  }
}
int ncclGetUniqueId(Id* id) {
  *id = {};
  const auto name = open_hub();
  name.copy(id->bytes, sizeof id->bytes - 1);
  const std::lock_guard lock(mutex);
  ++num_ids;
  return name.empty() ? invalid_usage : ok;
}
int ncclCommInitRankConfig(void** made, int size, Id id, int rank,
                           Config* config) {
  const bool blocks = config == nullptr || config->blocking != 0;
  auto* link = new RankLink(id.bytes, {.size = size,
                                       .rank = rank,
                                       .version = version_of_library(),
                                       .blocks = blocks});
  *made = link;
  return blocks ? link->wait_until_joined() : in_progress;
}
int ncclCommInitRank(void** made, int size, Id id, int rank) {
  return ncclCommInitRankConfig(made, size, id, rank, nullptr);
}
int ncclCommAbort(void* communicator) {
  link_of(communicator)->abort();
  return ok;
}
int ncclCommGetAsyncError(void* communicator, int* error) {
  *error = link_of(communicator)->state();
  return ok;
}
int ncclGroupStart() {
  if (open_group.depth++ == 0)
    open_group = {.depth = 1, .result = ok, .calls = {}};
  return ok;
}
int ncclGroupEnd() {
  if (open_group.depth == 0)
    return invalid_usage;
  if (--open_group.depth > 0)
    return ok;
  open_group.calls.clear();
  return open_group.result;
}
int ncclAllReduce(const void* from, void* to, std::size_t count, int type,
                  int operation, void* communicator, void* stream) {
  if (!can_add(type, operation))
    return invalid_argument;
  return start(communicator, stream,
               call_of(What::all_reduce, type, count, count), from, to);
}
int ncclAllGather(const void* from, void* to, std::size_t count, int type,
                  void* communicator, void* stream) {
  return start(communicator, stream,
               call_of(What::all_gather, type, count, count), from, to);
}
int ncclReduceScatter(const void* from, void* to, std::size_t count, int type,
                      int operation, void* communicator, void* stream) {
  if (!can_add(type, operation))
    return invalid_argument;
  const auto size
    = static_cast<std::size_t>(link_of(communicator)->place().size);
  return start(communicator, stream,
               call_of(What::reduce_scatter, type, count, count * size), from,
               to);
}
int ncclBroadcast(const void* from, void* to, std::size_t count, int type,
                  int root, void* communicator, void* stream) {
  const bool sends = link_of(communicator)->place().rank == root;
  auto call = call_of(What::broadcast, type, count, sends ? count : 0);
  call.root = root;
  return start(communicator, stream, call, from, to);
}
int ncclSend(const void* from, std::size_t count, int type, int peer,
             void* communicator, void* stream) {
  return pass_on(link_of(communicator)->place().rank, peer,
                 call_of(What::pass_on, type, count, count), from, nullptr,
                 communicator, stream);
}
int ncclRecv(void* to, std::size_t count, int type, int peer,
             void* communicator, void* stream) {
  return pass_on(peer, link_of(communicator)->place().rank,
                 call_of(What::pass_on, type, count, 0), nullptr, to,
                 communicator, stream);
}

int cudaSetDevice(int) {
  return 0;
}
int cudaStreamCreateWithFlags(void** made, unsigned) {
  *made = new Stream; // kept: a call may still end on it
  return 0;
}
int cudaStreamDestroy(void*) {
  return 0;
}
/// Returns not ready (600) while calls on the stream go on.
int cudaStreamQuery(void* stream) {
  return stream_of(stream).mark().is_reached() ? 0 : last_error = 600;
}
int cudaEventCreateWithFlags(void** made, unsigned) {
  *made = new Mark;
  return 0;
}
/// Events of a capture are for the capture alone: here there are none.
int cudaEventRecord(void* event, void* stream) {
  if (capture_status != 0)
    return last_error = 900;
  const std::lock_guard lock(mutex);
  *static_cast<Mark*>(event) = stream_of(stream).mark();
  return 0;
}
int cudaEventQuery(void* event) {
  const std::lock_guard lock(mutex);
  return static_cast<Mark*>(event)->is_reached() ? 0 : last_error = 600;
}
int cudaEventDestroy(void* event) {
  delete static_cast<Mark*>(event);
  return 0;
}
/// Calls start at once, whatever their stream waits for: only questions differ.
int cudaStreamWaitEvent(void* stream, void* event, unsigned) {
  const std::lock_guard lock(mutex);
  stream_of(stream).wait_for(*static_cast<Mark*>(event));
  return 0;
}
int cudaStreamIsCapturing(void*, int* status) {
  *status = capture_status;
  return 0;
}
int cudaGetLastError() {
  return std::exchange(last_error, 0);
}
int cudaMalloc(void** made, std::size_t size_bytes) {
  *made = std::malloc(size_bytes);
  const std::lock_guard lock(mutex);
  gpu_blocks[static_cast<const std::byte*>(*made)] = size_bytes;
  return *made == nullptr ? 2 : 0;
}
int cudaFree(void* data) {
  const std::lock_guard lock(mutex);
  gpu_blocks.erase(static_cast<const std::byte*>(data));
  std::free(data);
  return 0;
}
/// Copies when all before it on the stream has ended.
int cudaMemcpyAsync(void* to, const void* from, std::size_t size_bytes, int,
                    void* stream) {
  Stream& on = stream_of(stream);
  std::unique_lock lock(on.mutex);
  on.changed.wait(lock, [&] { return on.ended == on.begun; });
  std::memcpy(to, from, size_bytes);
  return 0;
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
    *kind = 2;
  return 0;
}

/// Returns how many groups have been made so far.
std::uint64_t fake_nccl_groups() {
  const std::lock_guard lock(mutex);
  return num_ids;
}
/// Sets what the calling thread's streams say of a capture.
void fake_gpu_capture(int status) {
  if (capture_status == 0)
    captured.clear();
  capture_status = status;
}
/// Makes the calls that the calling thread captured last.
void fake_gpu_replay() {
  for (const auto& call : captured)
    call();
}
/// Makes memory count as the host's again: its address may be given to others.
void fake_gpu_forget(const std::byte* data) {
  const std::lock_guard lock(mutex);
  gpu_blocks.erase(data);
}
/// Sets which memory counts as a GPU's.
void fake_gpu_memory(const std::byte* data, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  gpu_blocks[data] = bytes;
}
}
