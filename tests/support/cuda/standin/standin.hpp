// The stand-in for CUDA's runtime (cudart_*.cpp) as tests and the other
// stand-ins see it: pretended GPUs whose memory is the host's, and whose
// streams run what was given to them when somebody waits, in a random legal
// order.
//
// The functions with C names can be found by dlsym in any process that runs
// under the preload (tests/gpu/standin.sh); a process without it has none.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

extern "C" {
/// Begins anew: runs what waits, then forgets counts, faults and the error that
/// ended the context. Blocks, streams and events stay.
void standin_begin(std::uint64_t seed);
/// Sets the memory that each pretended GPU has.
void standin_set_memory(std::size_t bytes_of_a_gpu);
/// Returns the launches of kernels whose name contains `part` (null: all).
long standin_launches(const char* part);
/// Returns the calls that made the host wait, by part of their name.
long standin_waits(const char* part);
/// Returns the launches of kernels that had no body and so did nothing.
long standin_without_body();
/// Returns the illegal accesses and calls so far.
long standin_faults();
/// Returns what the last fault was; empty: there was none. Valid until the
/// next call of this thread.
const char* standin_fault();
/// Returns the bytes of a pretended GPU that are taken.
std::size_t standin_taken(int device);
/// Returns pieces of work that wait in streams.
long standin_waiting();
/// Writes launches and waits by name to the error output.
void standin_print();
}

namespace troupe::standin {

/// Memory that a piece of work reads or writes.
struct Range {
  const void* data = nullptr;
  std::size_t size_bytes = 0;
};

/// A place in a stream's order.
using Place = std::shared_ptr<struct Node>;

/// A stream at a meeting: where it has arrived, and the place that it does not
/// pass until the meeting lets it.
struct Seat {
  Place arrival;
  Place end;
};

/// One piece of work of a stream.
struct Work {
  std::string name;
  std::vector<Range> ranges;  ///< checked when it runs
  std::function<void()> body; ///< empty: only a place in the stream's order
  /// Goes to a meeting anew for each launch of a graph that has this work; it
  /// has no body then.
  std::function<void(const Seat&)> meets = {};
};

/// Puts work at a stream's end, or into the graph that the stream captures.
/// `device`: that of the legacy default stream. Returns 0 or a CUDA error.
cudaError_t enqueue(cudaStream_t stream, int device, Work work);

/// Counts a launch under this name, without work.
void count_launch(const std::string& name);

/// While it exists, what the calling thread launches and copies is counted and
/// keeps its place in the order, but does nothing: somebody else fills the
/// results.
class Shadow {
public:
  Shadow();
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

private:
  bool before_;
};

/// Returns whether the stream captures.
bool is_capturing(cudaStream_t stream, int device);
/// Returns the stream's end; null if it captures.
Place end_of(cudaStream_t stream, int device);
/// Appends a place to a stream that does not capture, which it does not pass
/// until `let_pass`; null: there is no such stream.
Place stop_at(cudaStream_t stream, int device, const std::string& name);
void let_pass(const Place& place);

/// Work of several streams, as a collective of GPUs is: it runs once all have
/// arrived, and none of them goes on before it has run.
class Meeting {
public:
  Meeting();
  /// Makes the work wait for the arrival, and the end, unless it is null, for
  /// the work.
  void come(const Seat& seat);
  /// Makes the work due after all places that have come.
  void start(Work work);
  /// Lets all streams pass without the work.
  void abandon();

private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The grid of a launch.
struct Grid {
  dim3 blocks;
  dim3 threads;
};

/// Turns the arguments of a launch, which are gone when it returns, into work.
using BindKernel = std::function<std::function<void()>(void** args, Grid)>;

/// Gives a kernel a host body, by its name as the compiler registers it.
void set_kernel_body(const std::string& name, BindKernel bind);

/// Gives a kernel with these parameters a host body.
template <class... Args>
void set_kernel_body(const std::string& name, void (*body)(Grid, Args...)) {
  set_kernel_body(name, [body](void** args, Grid grid) {
    const auto taken = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<Args...>{*static_cast<Args*>(args[I])...};
    }
    (std::index_sequence_for<Args...>{});
    return [=] {
      std::apply([&](const Args&... each) { body(grid, each...); }, taken);
    };
  });
}

} // namespace troupe::standin
