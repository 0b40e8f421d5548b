#include "streams.hpp"

#include "state.hpp"

#include <algorithm>
#include <utility>

namespace troupe::standin {

namespace {

void invalidate(const CapturePtr& capture, const char* call, const char* why) {
  capture->is_invalid = true;
  fault(cudaSuccess, std::string(call) + " during a capture: " + why);
}

bool blocks_anybody(const Capture& capture) {
  const bool is_mine = capture.thread == std::this_thread::get_id();
  switch (thread_state().mode) {
  case cudaStreamCaptureModeRelaxed:
    return false;
  case cudaStreamCaptureModeThreadLocal:
    return is_mine && capture.mode != cudaStreamCaptureModeRelaxed;
  default:
    return is_mine ? capture.mode != cudaStreamCaptureModeRelaxed
                   : capture.mode == cudaStreamCaptureModeGlobal;
  }
}

} // namespace

Streams& streams() {
  static auto& only = *new Streams;
  return only;
}

std::vector<CapturePtr>& captures() {
  static auto& only = *new std::vector<CapturePtr>;
  return only;
}

bool Streams::is_legacy(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy
         || stream == cudaStreamPerThread;
}

cudaStream_t Streams::add(int device, bool is_blocking) {
  // An address of our own: what is not a stream is found out.
  auto* handle = reinterpret_cast<cudaStream_t>(new char[16]);
  Stream& made = streams_[handle];
  made.device = device;
  made.is_blocking = is_blocking;
  return handle;
}

bool Streams::remove(cudaStream_t stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end())
    return false;
  // The legacy stream goes on waiting for what the stream had to do.
  Stream& legacy = legacy_[found->second.device];
  if (found->second.is_blocking && found->second.tail)
    legacy.tail = queue().add({}, {legacy.tail, std::move(found->second.tail)});
  streams_.erase(found);
  return true;
}

Stream* Streams::find(cudaStream_t stream, int device) {
  if (is_legacy(stream)) {
    Stream& legacy = legacy_[device];
    legacy.device = device;
    return &legacy;
  }
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : &found->second;
}

std::vector<NodePtr> Streams::ends(cudaStream_t stream, int device) {
  Stream* found = find(stream, device);
  std::vector<NodePtr> after{found->tail};
  if (is_legacy(stream)) {
    for (const auto& [handle, other] : streams_)
      if (other.device == device && other.is_blocking)
        after.push_back(other.tail);
  } else if (found->is_blocking) {
    after.push_back(legacy_[found->device].tail);
  }
  return after;
}

std::vector<NodePtr> Streams::ends_of_device(int device) {
  std::vector<NodePtr> all{legacy_[device].tail};
  for (const auto& [handle, stream] : streams_)
    if (stream.device == device)
      all.push_back(stream.tail);
  return all;
}

cudaError_t Streams::capture_work(Stream& stream, Work work) {
  if (stream.capture->is_invalid)
    return said(cudaErrorStreamCaptureInvalidated);
  auto& works = stream.capture->graph->works;
  works.push_back({std::move(work), stream.captured_tail});
  stream.captured_tail = {works.size() - 1};
  return cudaSuccess;
}

cudaError_t Streams::append(cudaStream_t stream, int device, Work work,
                            const std::vector<NodePtr>& after,
                            std::size_t holds, NodePtr* made) {
  Stream* found = find(stream, device);
  if (found == nullptr)
    return said(cudaErrorInvalidResourceHandle);
  if (thread_state().is_shadow)
    work.body = nullptr;
  if (found->capture)
    return capture_work(*found, std::move(work));
  if (is_legacy(stream))
    for (const CapturePtr& capture : captures()) {
      const Stream* origin = find(capture->origin, device);
      if (origin == nullptr || !origin->is_blocking
          || capture->device != device)
        continue;
      invalidate(capture, work.name.c_str(),
                 "the legacy stream would wait for it");
      return said(cudaErrorStreamCaptureImplicit);
    }
  std::vector<NodePtr> before = ends(stream, device);
  before.insert(before.end(), after.begin(), after.end());
  found->tail = queue().add(std::move(work), before, holds);
  if (made != nullptr)
    *made = found->tail;
  return cudaSuccess;
}

cudaError_t enqueue(cudaStream_t stream, int device, Work work) {
  const Lock lock(mutex());
  return streams().append(stream, device, std::move(work));
}

cudaError_t check_unsafe(const char* call) {
  const Lock lock(mutex());
  for (const CapturePtr& capture : captures())
    if (blocks_anybody(*capture)) {
      invalidate(capture, call, "refused by the thread's mode");
      return said(cudaErrorStreamCaptureUnsupported);
    }
  return cudaSuccess;
}

cudaError_t check_no_capture(const Stream& stream, const char* call) {
  if (!stream.capture)
    return cudaSuccess;
  invalidate(stream.capture, call, "its stream is captured");
  return said(cudaErrorStreamCaptureUnsupported);
}

cudaError_t check_device(int device, const char* call) {
  const Lock lock(mutex());
  cudaError_t result = cudaSuccess;
  for (const CapturePtr& capture : captures())
    if (capture->device == device) {
      invalidate(capture, call, "a stream of the device is captured");
      result = cudaErrorStreamCaptureUnsupported;
    }
  return said(result);
}

bool is_capturing(cudaStream_t stream, int device) {
  const Lock lock(mutex());
  const Stream* found = streams().find(stream, device);
  return found != nullptr && found->capture != nullptr;
}

Place stop_at(cudaStream_t stream, int device, const std::string& name) {
  const Lock lock(mutex());
  constexpr std::size_t until_it_may_pass = 1;
  NodePtr place;
  streams().append(stream, device, {name, {}, {}}, {}, until_it_may_pass,
                   &place);
  return place;
}

void let_pass(const Place& place) {
  const Lock lock(mutex());
  queue().release(place);
}

Place end_of(cudaStream_t stream, int device) {
  const Lock lock(mutex());
  NodePtr end;
  streams().append(stream, device, {"arrival", {}, {}}, {}, 0, &end);
  return end;
}

struct Meeting::State {
  std::vector<NodePtr> arrivals;
  std::vector<NodePtr> ends;
};

Meeting::Meeting() : state_(std::make_shared<State>()) {}

void Meeting::come(const Seat& seat) {
  const Lock lock(mutex());
  state_->arrivals.push_back(seat.arrival);
  if (seat.end != nullptr)
    state_->ends.push_back(seat.end);
}

void Meeting::start(Work work) {
  const Lock lock(mutex());
  const auto shared = state_;
  const auto body = std::move(work.body);
  work.body = [shared, body] {
    body();
    for (const NodePtr& end : std::exchange(shared->ends, {}))
      queue().release(end);
  };
  queue().add(std::move(work), state_->arrivals);
}

void Meeting::abandon() {
  const Lock lock(mutex());
  for (const NodePtr& end : std::exchange(state_->ends, {}))
    queue().release(end);
}

} // namespace troupe::standin
