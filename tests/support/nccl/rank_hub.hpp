// The hub that joins the ranks of the stand-in for NCCL, of one process or
// several on a host: the process that makes an id listens at a Unix socket of
// that name, takes the calls of all ranks, computes what each gets when all
// have called, and answers. A call never waits in its caller, so calls of a
// group may come in any order, as NCCL's group calls do.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace troupe::fake_nccl {

// results of NCCL
constexpr int ok = 0;
constexpr int invalid_argument = 4;
constexpr int invalid_usage = 5;
constexpr int remote_error = 6;
constexpr int in_progress = 7;

enum class What : std::int32_t {
  hello,
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  pass_on
};

/// A call of a rank, as it is sent; `bytes` of data follow it.
struct RankCall {
  What what = What::hello;
  std::int32_t type = 0;  ///< of numbers; of hello the version of NCCL
  std::int32_t root = 0;  ///< of pass_on the sender; of hello the rank
  std::int32_t other = 0; ///< of pass_on the receiver; of hello the size
  std::uint64_t count = 0;
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;
  /// The number of a pass_on among those of its pair; 0: as they arrive.
  std::uint64_t order = 0;
};

/// Makes an id and serves the ranks that join by it.
std::string open_hub();

std::size_t bytes_of_type(int type);

/// A rank of a group. Never deleted: threads may still ask for its state.
class RankLink {
public:
  struct Place {
    int size = 0;
    int rank = 0;
    int version = 0;
    bool blocks = true; ///< its calls return when they have started
  };
  /// Goes to the group of this id, without waiting for the others.
  RankLink(const std::string& id, const Place& place);

  /// Returns in_progress until all have joined; then ok, until an error.
  int state();
  int wait_until_joined();
  const Place& place() const {
    return place_;
  }

  /// Gets the result, or null if the call was given up; not called after an
  /// abort has returned.
  using Done = std::function<void(const std::byte* result, std::size_t bytes)>;
  /// Sends a call with `call.bytes` of data from there.
  int send(RankCall call, const void* from, Done done);
  /// Leaves the group, whose other ranks get an error.
  void abort();

private:
  void read_answers();
  void set_state(int state);

  const Place place_;
  int socket_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::mutex sending_;
  int state_ = in_progress;
  std::uint64_t next_tag_ = 1; ///< 0: of hello, and of errors of the group
  std::map<std::uint64_t, Done> waiting_;
};

} // namespace troupe::fake_nccl
