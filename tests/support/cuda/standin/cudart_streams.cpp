// Streams and events of CUDA's runtime.
#include "state.hpp"
#include "streams.hpp"

#include <chrono>
#include <memory>

using namespace troupe::standin;

namespace {

double now_s() {
  return std::chrono::duration<double>(
           std::chrono::steady_clock::now().time_since_epoch())
    .count();
}

Event* event_of(cudaEvent_t event) {
  return static_cast<std::shared_ptr<Event>*>(static_cast<void*>(event))->get();
}

std::shared_ptr<Event> shared_event(cudaEvent_t event) {
  return *static_cast<std::shared_ptr<Event>*>(static_cast<void*>(event));
}

int current() {
  return thread_state().device;
}

/// Lets a little time pass, then says whether all of this is done.
cudaError_t query(const std::vector<NodePtr>& ends) {
  queue().run_some(1);
  for (const NodePtr& end : ends)
    if (end != nullptr && !end->is_done)
      return said(cudaErrorNotReady);
  return after_work();
}

void wait_for(const std::vector<NodePtr>& ends) {
  for (const NodePtr& end : ends)
    queue().run_until(end);
}

cudaError_t join_capture(Stream& stream, const Event& event) {
  if (event.capture->is_invalid)
    return said(cudaErrorStreamCaptureInvalidated);
  if (!stream.capture) {
    stream.capture = event.capture;
    ++event.capture->open_streams;
  }
  if (stream.capture != event.capture)
    return said(cudaErrorStreamCaptureMerge);
  stream.captured_tail.insert(stream.captured_tail.end(),
                              event.captured.begin(), event.captured.end());
  return cudaSuccess;
}

} // namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* made, unsigned flags,
                                         int) {
  const Lock lock(mutex());
  *made = streams().add(current(), (flags & cudaStreamNonBlocking) == 0);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned flags) {
  return cudaStreamCreateWithPriority(made, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* made) {
  return cudaStreamCreateWithPriority(made, cudaStreamDefault, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(mutex());
  return streams().remove(stream) ? cudaSuccess
                                  : said(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  count_wait("cudaStreamSynchronize");
  std::vector<NodePtr> ends;
  {
    const Lock lock(mutex());
    Stream* found = streams().find(stream, current());
    if (found == nullptr)
      return said(cudaErrorInvalidResourceHandle);
    if (const auto refused = check_no_capture(*found, "cudaStreamSynchronize"))
      return refused;
    if (const auto refused = check_unsafe("cudaStreamSynchronize"))
      return refused;
    ends = streams().ends(stream, current());
  }
  wait_for(ends);
  return after_work();
}
cudaError_t cudaDeviceSynchronize() {
  count_wait("cudaDeviceSynchronize");
  if (const auto refused = check_device(current(), "cudaDeviceSynchronize"))
    return refused;
  std::vector<NodePtr> ends;
  {
    const Lock lock(mutex());
    ends = streams().ends_of_device(current());
  }
  wait_for(ends);
  return after_work();
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Lock lock(mutex());
  Stream* found = streams().find(stream, current());
  if (found == nullptr)
    return said(cudaErrorInvalidResourceHandle);
  if (const auto refused = check_no_capture(*found, "cudaStreamQuery"))
    return refused;
  if (const auto refused = check_unsafe("cudaStreamQuery"))
    return refused;
  return query(streams().ends(stream, current()));
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                               void* data) {
  return enqueue(stream, current(),
                 {"cudaLaunchHostFunc", {}, [=] { function(data); }});
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                  cudaStreamCallback_t function, void* data,
                                  unsigned) {
  return enqueue(stream, current(), {"cudaStreamAddCallback", {}, [=] {
                                       function(stream, cudaSuccess, data);
                                     }});
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  const Lock lock(mutex());
  const Stream* found = streams().find(stream, current());
  if (found == nullptr)
    return said(cudaErrorInvalidResourceHandle);
  *flags = found->is_blocking ? cudaStreamDefault : cudaStreamNonBlocking;
  return cudaSuccess;
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  const Lock lock(mutex());
  const Stream* found = streams().find(stream, current());
  if (found == nullptr)
    return said(cudaErrorInvalidResourceHandle);
  *device = found->device;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned) {
  *made = reinterpret_cast<cudaEvent_t>(
    new std::shared_ptr<Event>(std::make_shared<Event>()));
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* made) {
  return cudaEventCreateWithFlags(made, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Lock lock(mutex());
  delete static_cast<std::shared_ptr<Event>*>(static_cast<void*>(event));
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(mutex());
  Stream* found = streams().find(stream, current());
  if (found == nullptr)
    return said(cudaErrorInvalidResourceHandle);
  const auto recorded = shared_event(event);
  if (found->capture) {
    recorded->capture = found->capture;
    recorded->captured = found->captured_tail;
    return cudaSuccess;
  }
  recorded->capture = nullptr;
  return streams().append(
    stream, current(),
    {"cudaEventRecord", {}, [recorded] { recorded->time_s = now_s(); }}, {}, 0,
    &recorded->node);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned) {
  const Lock lock(mutex());
  Stream* found = streams().find(stream, current());
  if (found == nullptr)
    return said(cudaErrorInvalidResourceHandle);
  const Event& awaited = *event_of(event);
  if (awaited.capture)
    return join_capture(*found, awaited);
  if (found->capture && awaited.node && !awaited.node->is_done)
    return said(cudaErrorStreamCaptureIsolation);
  return streams().append(stream, current(), {"cudaStreamWaitEvent", {}, {}},
                          {awaited.node});
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(mutex());
  if (event_of(event)->capture)
    return said(cudaErrorCapturedEvent);
  if (const auto refused = check_unsafe("cudaEventQuery"))
    return refused;
  return query({event_of(event)->node});
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  count_wait("cudaEventSynchronize");
  NodePtr node;
  {
    const Lock lock(mutex());
    if (event_of(event)->capture)
      return said(cudaErrorCapturedEvent);
    if (const auto refused = check_unsafe("cudaEventSynchronize"))
      return refused;
    node = event_of(event)->node;
  }
  queue().run_until(node);
  return after_work();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from,
                                 cudaEvent_t to) {
  const Lock lock(mutex());
  *milliseconds
    = static_cast<float>((event_of(to)->time_s - event_of(from)->time_s) * 1e3);
  return cudaSuccess;
}
}
