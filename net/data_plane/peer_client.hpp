// The pulling end: all pulls from one peer over one connection that is made
// when the first pull needs it. A bounded number of requests is in flight, the
// rest waits here. Runs on the I/O thread.
#pragma once

#include "net/base/buffer_pool.hpp"
#include "net/data_plane/data_plane.hpp"
#include "net/data_plane/memory_pull.hpp"
#include "net/transport/connection.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::net {

/// State shared by all clients of a plane.
struct PullingContext {
  WorkerId self;
  std::string token;
  std::shared_ptr<const TlsContext> tls; ///< nullptr: plaintext
  std::chrono::milliseconds progress_deadline{};
  BufferPool pool;
  Incarnation incarnation; ///< only on the I/O thread
  std::atomic<std::uint64_t> bytes_received = 0;
};

class PeerClient : public ConnectionHandler,
                   public std::enable_shared_from_this<PeerClient> {
public:
  PeerClient(boost::asio::io_context& io,
             std::shared_ptr<PullingContext> context, WorkerId peer,
             std::string host, std::uint16_t port);

  void pull_rows(StepId step, std::vector<std::string> keys,
                 std::vector<SampleId> samples, RowsDone done);
  void pull_memory(MemoryPull& pull);
  /// Fails all pending pulls; a later pull reconnects.
  void fail(const Failure& failure);

  void on_header(const Message& message, std::uint64_t payload_bytes,
                 ReadTargets& targets) override;
  bool on_frame(const Message& reply) override;
  void on_written() override;
  bool expects_frames() const override;
  void on_closed(const Failure& failure) override;

private:
  struct RowsRequest {
    PullRows message;
    RowsDone done;
  };
  using MemoryRequests = std::list<MemoryRequest>;

  void send_waiting();
  void send_more();
  void send_rows();
  void send_memory();
  void connect();
  void connected(Connection::Socket socket);
  void rows_targets(const RowsReply& reply, std::uint64_t bytes,
                    ReadTargets& targets);
  void memory_targets(const MemoryReply& reply, std::uint64_t bytes,
                      ReadTargets& targets);
  void greeted(const Message& reply);
  /// Returns the request with this number; the end of the list: none.
  MemoryRequests::iterator asked_memory(std::uint64_t number);
  std::size_t num_asked() const;
  std::string name() const;

  boost::asio::io_context& io_;
  std::shared_ptr<PullingContext> context_;
  WorkerId peer_;
  std::string host_;
  std::uint16_t port_;
  std::shared_ptr<boost::asio::ip::tcp::resolver> resolver_;
  std::shared_ptr<Connection> connection_;
  std::uint64_t attempt_ = 0; ///< attempts with lower numbers are obsolete
  bool connecting_ = false;
  bool welcome_ = false;
  std::uint64_t next_request_ = 1;
  std::deque<RowsRequest> waiting_rows_; ///< sent first
  MemoryRequests waiting_memory_;
  std::map<std::uint64_t, RowsRequest> asked_rows_;
  MemoryRequests asked_memory_;
  Message pull_ = PullMemory{}; ///< last one sent; its memory is reused
  Rows rows_;                   ///< being filled
};

} // namespace troupe::net
