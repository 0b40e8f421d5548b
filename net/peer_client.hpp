// The pulling end: all pulls from one peer over one connection that is made
// when the first pull needs it. A bounded number of requests is on the way, the
// rest waits here. Lives on the I/O thread.
#pragma once

#include "net/buffer_pool.hpp"
#include "net/connection.hpp"
#include "net/data_plane.hpp"
#include "net/memory_requests.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::net {

/// What all clients of a plane share.
struct PullingContext {
  WorkerId self;
  std::string token;
  std::shared_ptr<const TlsContext> tls; ///< nullptr: in clear
  std::chrono::milliseconds progress_deadline{};
  BufferPool pool;
  Incarnation incarnation; ///< on the I/O thread only
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
  void pull_memory(std::uint64_t id, std::span<const PulledRuns> parts,
                   MemoryDone done);
  /// Fails everything pending; a later pull connects anew.
  void fail(const Failure& failure);

  ReadTargets on_header(Message message, std::uint64_t payload_bytes) override;
  bool on_frame() override;
  bool expects_frames() const override;
  void on_closed(const Failure& failure) override;

private:
  /// A pull of memory in several requests; `done` is called after the last of
  /// them ended, because until then somebody may write to its memory.
  struct MemoryPull {
    std::size_t requests = 0;
    std::optional<Failure> failure;
    MemoryDone done;
  };
  struct Request {
    Message message;
    RowsDone rows_done;                 ///< a pull of rows
    std::shared_ptr<MemoryPull> memory; ///< a piece of a pull of memory
    MemoryRequest into;
  };

  void submit(Request request);
  void send_more();
  void connect();
  void connected(Connection::Socket socket);
  ReadTargets rows_targets(const RowsAnswer& answer, std::uint64_t bytes);
  void greeted(const Message& answer);
  void request_failed(Request request, const Failure& failure);
  void request_done(Request request);
  std::string name() const;

  boost::asio::io_context& io_;
  std::shared_ptr<PullingContext> context_;
  WorkerId peer_;
  std::string host_;
  std::uint16_t port_;
  std::shared_ptr<boost::asio::ip::tcp::resolver> resolver_;
  std::shared_ptr<Connection> connection_;
  std::uint64_t attempt_ = 0; ///< connection attempts of older numbers are void
  bool connecting_ = false;
  bool welcome_ = false;
  std::uint64_t next_request_ = 1;
  std::deque<Request> waiting_;
  std::map<std::uint64_t, Request> on_the_way_;
  Message answer_; ///< whose payload is being read
  Rows rows_;      ///< being filled
};

} // namespace troupe::net
