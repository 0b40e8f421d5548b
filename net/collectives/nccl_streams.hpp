// The calls of a member of NCCL on streams: given to NCCL between two events,
// which other streams and the watchdog wait for. While the thread's stream is
// captured there are no events: the call becomes a part of the graph.
#pragma once

#include "net/collectives/call_log.hpp"
#include "net/collectives/nccl_call.hpp"
#include "net/collectives/nccl_group.hpp"
#include "net/collectives/stream_collectives.hpp"
#include "net/collectives/stream_watchdog.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace troupe::net {

class NcclStreams final : public StreamCollectives {
public:
  struct Spec {
    std::string who; ///< for messages
    int device = 0;  ///< its number in this process
    NcclPlace place;
    std::chrono::milliseconds progress_deadline{0};
    /// Returns the stream of the calling thread's kernels.
    std::function<CudaStream()> thread_stream;
    /// Ends the group of all members, from any thread.
    std::function<void(const Failure&)> abort;
  };
  /// The group over NCCL, which has joined, and that of the host; both outlive
  /// this.
  NcclStreams(Spec spec, Collectives& host, NcclGroup& group,
              const NcclLibrary& library);

  StreamTicket all_reduce_sum(void* data, std::size_t count, DType dtype,
                              const char* name, StreamOrder order) override;
  StreamTicket all_gather(const void* mine, void* all, std::size_t count,
                          DType dtype, const char* name,
                          StreamOrder order) override;
  StreamTicket reduce_scatter_sum(const void* all, void* mine,
                                  std::size_t count, DType dtype,
                                  const char* name, StreamOrder order) override;
  StreamTicket broadcast(void* data, std::size_t count, DType dtype,
                         std::uint32_t root, const char* name,
                         StreamOrder order) override;
  void join(StreamTicket ticket) override;
  void launch(const char* name, const std::function<void()>& graph) override;
  void end_capture(bool is_kept) override;
  void check() override;
  void compare() override;

  /// Compares calls if there were any since the last time.
  void compare_new();

private:
  StreamTicket enqueue(const NcclCall& call, const char* name,
                       StreamOrder order);
  StreamTicket watched(const CallMark& mark, CudaStream stream,
                       const std::function<void(CudaStream)>& start,
                       StreamOrder order);
  CudaStream thread_stream() const;
  CaptureState capture_of(CudaStream stream) const;
  void check_cuda(int result, const std::string& name) const;
  template <class Body>
  std::invoke_result_t<Body> ending_all_on_failure(const Body& body);

  const Spec spec_;
  Collectives& host_;
  NcclGroup& group_;
  const NcclLibrary& library_;
  CallLog log_;
  std::vector<CallMark> captured_; ///< since the last end of a capture
  StreamWatchdog watchdog_;
};

} // namespace troupe::net
