#include "net/collectives/nccl_streams.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::net {

NcclStreams::NcclStreams(Spec spec, Collectives& host, NcclGroup& group,
                         const NcclLibrary& library)
  : spec_(std::move(spec)),
    host_(host),
    group_(group),
    library_(library),
    watchdog_({.who = spec_.who,
               .device = spec_.device,
               .progress_deadline = spec_.progress_deadline,
               .failure =
                 [this](const std::string& name) {
                   const auto trouble = group_.trouble(name);
                   // who caused it has ended the group of all before NCCL's
                   const auto cause = host_.failure();
                   return cause ? cause : trouble;
                 },
               .abort = spec_.abort},
              library) {}

StreamTicket NcclStreams::all_reduce_sum(void* data, std::size_t count,
                                         DType dtype, const char* name,
                                         StreamOrder order) {
  return enqueue({GroupOperation::all_reduce, data, data, count, dtype}, name,
                 order);
}

StreamTicket NcclStreams::all_gather(const void* mine, void* all,
                                     std::size_t count, DType dtype,
                                     const char* name, StreamOrder order) {
  return enqueue({GroupOperation::all_gather, mine, all, count, dtype}, name,
                 order);
}

StreamTicket NcclStreams::reduce_scatter_sum(const void* all, void* mine,
                                             std::size_t count, DType dtype,
                                             const char* name,
                                             StreamOrder order) {
  return enqueue({GroupOperation::reduce_scatter, all, mine, count, dtype},
                 name, order);
}

StreamTicket NcclStreams::broadcast(void* data, std::size_t count, DType dtype,
                                    std::uint32_t root, const char* name,
                                    StreamOrder order) {
  return enqueue({GroupOperation::broadcast, data, data, count, dtype, root},
                 name, order);
}

StreamTicket NcclStreams::enqueue(const NcclCall& call, const char* name,
                                  StreamOrder order) {
  nccl_type(call.dtype); // throws before anything has begun
  const CallMark mark
    = make_call_mark(call.operation, call.count, call.dtype, call.root, name);
  const auto start = [&](CudaStream stream) {
    group_.launch(
      name,
      [&](NcclCommunicator communicator, CudaStream on) {
        return start_nccl_call(library_, call, spec_.place, communicator, on);
      },
      stream);
  };
  return ending_all_on_failure([&] {
    group_.use_device();
    const CudaStream stream = thread_stream();
    const CaptureState capture = capture_of(stream);
    if (capture == CaptureState::none)
      return watched(mark, stream, start, order);
    TROUPE_CHECK(order == StreamOrder::in_line,
                 std::string(name) + ": captured calls are in line");
    check();
    if (capture == CaptureState::invalidated) // NCCL would take it for none
      return StreamTicket{};
    start(stream);
    captured_.push_back(mark);
    return StreamTicket{};
  });
}

StreamTicket NcclStreams::watched(const CallMark& mark, CudaStream stream,
                                  const std::function<void(CudaStream)>& start,
                                  StreamOrder order) {
  check();
  const WatchedCall call = watchdog_.next(mark);
  const CudaStream target
    = order == StreamOrder::beside ? group_.stream() : stream;
  const auto check_event
    = [&](int result) { check_cuda(result, to_string(mark)); };
  check_event(library_.cuda.events.record(call.reached, stream));
  if (order == StreamOrder::beside)
    check_event(library_.cuda.events.hold_stream(target, call.reached, 0));
  start(target);
  check_event(library_.cuda.events.record(call.ended, target));
  watchdog_.watch(call);
  log_.add(mark);
  return {call.number};
}

void NcclStreams::join(StreamTicket ticket) {
  if (ticket.number == 0)
    return;
  ending_all_on_failure([&] {
    check();
    group_.use_device();
    const CudaEvent ended = watchdog_.end_of(ticket.number);
    if (ended != nullptr)
      check_cuda(library_.cuda.events.hold_stream(thread_stream(), ended, 0),
                 "waiting for a call on a stream");
  });
}

void NcclStreams::launch(const char* name, const std::function<void()>& graph) {
  const CallMark mark
    = make_call_mark(GroupOperation::graph, 0, DType::u8, 0, name);
  ending_all_on_failure([&] {
    group_.use_device();
    const CudaStream stream = thread_stream();
    TROUPE_CHECK(capture_of(stream) == CaptureState::none,
                 "a graph is launched in a capture");
    watched(
      mark, stream, [&](CudaStream) { graph(); }, StreamOrder::in_line);
  });
}

void NcclStreams::end_capture(bool is_kept) {
  if (is_kept)
    for (const CallMark& mark : captured_)
      log_.add(mark);
  captured_.clear();
}

void NcclStreams::check() {
  if (const auto failure = group_.failure())
    throw FailureError{*failure};
}

void NcclStreams::compare() {
  ending_all_on_failure([&] {
    check();
    log_.compare(host_, spec_.who);
  });
}

void NcclStreams::compare_new() {
  if (log_.has_new())
    compare();
}

CudaStream NcclStreams::thread_stream() const {
  return spec_.thread_stream ? spec_.thread_stream() : nullptr;
}

CaptureState NcclStreams::capture_of(CudaStream stream) const {
  auto state = CaptureState::none;
  check_cuda(library_.cuda.events.capture_of(stream, &state),
             "asking a stream for its capture");
  return state;
}

void NcclStreams::check_cuda(int result, const std::string& name) const {
  if (result == 0)
    return;
  library_.cuda.clear_error();
  throw FailureError{
    {Errc::io, spec_.who, fmt::format("{}: CUDA error {}", name, result), ""}};
}

/// A member that fails ends the group, so that no other waits for it.
template <class Body>
std::invoke_result_t<Body>
NcclStreams::ending_all_on_failure(const Body& body) {
  try {
    return body();
  } catch (const FailureError& error) {
    spec_.abort(error.failure());
    throw;
  }
}

} // namespace troupe::net
