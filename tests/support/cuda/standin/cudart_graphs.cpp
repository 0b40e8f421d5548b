// Captures and graphs of CUDA's runtime. What is refused: a launch inside a
// capture, and a stream that leaves a capture without coming back.
#include "state.hpp"
#include "streams.hpp"

#include <algorithm>
#include <utility>

using namespace troupe::standin;

namespace {

int current() {
  return thread_state().device;
}

/// Ends what streams have of a capture; returns whether every stream that
/// joined is among what the origin's end waits for.
bool close_streams(const CapturePtr& capture) {
  bool is_joined = true;
  const Stream* origin = streams().find(capture->origin, capture->device);
  const auto& works = capture->graph->works;
  std::vector<std::size_t> open = origin->captured_tail;
  std::vector<bool> reached(works.size());
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    if (reached[at])
      continue;
    reached[at] = true;
    open.insert(open.end(), works[at].after.begin(), works[at].after.end());
  }
  for (auto& [handle, stream] : streams().all()) {
    if (stream.capture != capture)
      continue;
    for (const std::size_t at : stream.captured_tail)
      is_joined &= reached[at];
    stream.capture = nullptr;
    stream.captured_tail.clear();
  }
  return is_joined;
}

std::shared_ptr<Graph>& graph_of(cudaGraph_t graph) {
  return *static_cast<std::shared_ptr<Graph>*>(static_cast<void*>(graph));
}

GraphExec& exec_of(cudaGraphExec_t exec) {
  return *static_cast<GraphExec*>(static_cast<void*>(exec));
}

/// Work of a launched graph that goes to a meeting.
struct LaunchedMeeting {
  std::function<void(const Seat&)> meets;
  Seat seat;
};

/// Adds captured work to the queue. Returns the piece that what follows in the
/// graph waits for.
NodePtr launch_work(const Work& work, const std::vector<NodePtr>& after,
                    std::vector<LaunchedMeeting>& meetings) {
  if (!work.meets)
    return queue().add(work, after);
  constexpr std::size_t until_the_meeting = 1;
  const NodePtr arrival = queue().add({work.name, {}, {}}, after);
  const NodePtr end
    = queue().add({work.name, {}, {}}, {arrival}, until_the_meeting);
  meetings.push_back({work.meets, {arrival, end}});
  return end;
}

} // namespace

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_state().mode);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   cudaStreamCaptureMode mode) {
  static unsigned long long next_id = 0;
  const Lock lock(mutex());
  Stream* found = streams().find(stream, current());
  if (found == nullptr)
    return said(cudaErrorInvalidResourceHandle);
  if (Streams::is_legacy(stream))
    return said(cudaErrorStreamCaptureUnsupported);
  if (found->capture)
    return said(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->id = ++next_id;
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->device = found->device;
  found->capture = capture;
  captures().push_back(std::move(capture));
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* made) {
  const Lock lock(mutex());
  *made = nullptr;
  Stream* found = streams().find(stream, current());
  if (found == nullptr)
    return said(cudaErrorInvalidResourceHandle);
  const CapturePtr capture = found->capture;
  if (!capture)
    return said(cudaErrorIllegalState);
  if (capture->origin != stream)
    return said(cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed
      && capture->thread != std::this_thread::get_id())
    return said(cudaErrorStreamCaptureWrongThread);
  const bool is_joined = close_streams(capture);
  std::erase(captures(), capture);
  if (capture->is_invalid)
    return said(cudaErrorStreamCaptureInvalidated);
  if (!is_joined) {
    fault(cudaSuccess, "a stream that a capture forked was not joined");
    return said(cudaErrorStreamCaptureUnjoined);
  }
  *made
    = reinterpret_cast<cudaGraph_t>(new std::shared_ptr<Graph>(capture->graph));
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr,
                                  nullptr, nullptr);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** nodes,
                                     const cudaGraphEdgeData** edges,
                                     size_t* num_nodes) {
  const Lock lock(mutex());
  const Stream* found = streams().find(stream, current());
  if (found == nullptr)
    return said(cudaErrorInvalidResourceHandle);
  *status = !found->capture              ? cudaStreamCaptureStatusNone
            : found->capture->is_invalid ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
  if (id != nullptr)
    *id = found->capture ? found->capture->id : 0;
  if (graph != nullptr)
    *graph = nullptr;
  if (nodes != nullptr)
    *nodes = nullptr;
  if (edges != nullptr)
    *edges = nullptr;
  if (num_nodes != nullptr)
    *num_nodes = 0;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made,
                                          cudaGraph_t graph,
                                          unsigned long long) {
  const Lock lock(mutex());
  *made = reinterpret_cast<cudaGraphExec_t>(
    new GraphExec{graph_of(graph), nullptr});
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph,
                                 unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(made, graph, flags);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  Lock lock(mutex());
  Stream* found = streams().find(stream, current());
  if (found == nullptr)
    return said(cudaErrorInvalidResourceHandle);
  if (found->capture) {
    fault(cudaSuccess, "a graph is launched inside a capture");
    return said(cudaErrorStreamCaptureUnsupported);
  }
  count_launch("cudaGraphLaunch");
  GraphExec& launched = exec_of(exec);
  std::vector<NodePtr> before = streams().ends(stream, current());
  before.push_back(launched.last);
  std::vector<NodePtr> nodes;
  std::vector<LaunchedMeeting> meetings;
  for (const CapturedWork& captured : launched.graph->works) {
    std::vector<NodePtr> after;
    for (const std::size_t at : captured.after)
      after.push_back(nodes[at]);
    nodes.push_back(launch_work(
      captured.work, captured.after.empty() ? before : after, meetings));
  }
  const cudaError_t result = streams().append(
    stream, current(), {"cudaGraphLaunch", {}, {}}, nodes, 0, &launched.last);
  lock.unlock(); // meetings have a lock that is taken before this one
  for (const LaunchedMeeting& meeting : meetings)
    meeting.meets(meeting.seat);
  return result;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes,
                              size_t* count) {
  const Lock lock(mutex());
  if (nodes != nullptr)
    return said(cudaErrorNotSupported);
  *count = graph_of(graph)->works.size();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Lock lock(mutex());
  delete &graph_of(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const Lock lock(mutex());
  delete &exec_of(exec);
  return cudaSuccess;
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t, const char*, unsigned) {
  return cudaSuccess;
}
}
