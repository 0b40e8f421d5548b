// Streams, events, captures and graphs of the pretended GPUs. A stream is the
// last piece of work that was given to it (queue.hpp); the legacy default
// stream of a device waits for its blocking streams, and these for it. A stream
// that captures appends to a graph instead, from which launches copy.
#pragma once

#include "queue.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace troupe::standin {

/// A captured piece and the earlier pieces of its graph that it waits for.
struct CapturedWork {
  Work work;
  std::vector<std::size_t> after;
};

/// A graph, while it is captured and later.
struct Graph {
  std::vector<CapturedWork> works;
};

/// A capture that is under way.
struct Capture {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  unsigned long long id = 0;
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  int device = 0;
  bool is_invalid = false;
  std::size_t open_streams = 0; ///< streams that joined and did not come back
};
using CapturePtr = std::shared_ptr<Capture>;

/// An executable graph.
struct GraphExec {
  std::shared_ptr<const Graph> graph;
  NodePtr last; ///< the end of its last launch: launches do not overlap
};

struct Event {
  NodePtr node; ///< null: not recorded
  CapturePtr capture;
  std::vector<std::size_t> captured; ///< in the graph of the capture
  double time_s = 0;
};

struct Stream {
  int device = 0;
  bool is_blocking = true; ///< ordered with the legacy default stream
  NodePtr tail;
  CapturePtr capture;
  std::vector<std::size_t> captured_tail;
};

/// All streams of the process; callers hold the lock.
class Streams {
public:
  cudaStream_t add(int device, bool is_blocking);
  bool remove(cudaStream_t stream);
  /// Returns the stream; the legacy default stream is that of `device`. Null if
  /// there is no such stream.
  Stream* find(cudaStream_t stream, int device);
  /// Returns whether this is the legacy default stream.
  static bool is_legacy(cudaStream_t stream);

  /// Appends work, which also waits for `after`.
  cudaError_t append(cudaStream_t stream, int device, Work work,
                     const std::vector<NodePtr>& after = {},
                     std::size_t holds = 0, NodePtr* made = nullptr);
  /// Returns what a piece at the stream's end would wait for.
  std::vector<NodePtr> ends(cudaStream_t stream, int device);
  /// Returns the ends of all streams of a device.
  std::vector<NodePtr> ends_of_device(int device);

  std::map<cudaStream_t, Stream>& all() {
    return streams_;
  }

private:
  cudaError_t capture_work(Stream& stream, Work work);

  std::map<cudaStream_t, Stream> streams_;
  std::map<int, Stream> legacy_; ///< by device
};
Streams& streams();

/// Returns 0, or refuses a call that may not be made while this thread or
/// another one captures: an invalid capture is the price, as with CUDA.
cudaError_t check_unsafe(const char* call);
/// Refuses to wait for a stream that captures.
cudaError_t check_no_capture(const Stream& stream, const char* call);
/// Refuses to wait for a device on which any stream captures.
cudaError_t check_device(int device, const char* call);

/// Captures under way; callers hold the lock.
std::vector<CapturePtr>& captures();

} // namespace troupe::standin
