// The serving end of one connection: checks the token, then serves pulls of
// rows from the stash and of memory from the exports. Runs on the I/O thread.
#pragma once

#include "net/data_plane/data_plane.hpp"
#include "net/data_plane/exports.hpp"
#include "net/transport/connection.hpp"
#include "net/transport/pending_connections.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::net {

/// State shared by all sessions of a plane.
struct ServingContext {
  std::string token;
  std::string name; ///< of this process, used in refusals: "worker 1"
  std::atomic<const Stash*> stash = nullptr;
  ExportTable exports;
  std::atomic<std::uint32_t> incarnation = 0;
  std::atomic<std::uint64_t> bytes_sent = 0;
  GroupSocketHandler on_group_socket; ///< only on the I/O thread
};

class ServingSession : public ConnectionHandler,
                       public std::enable_shared_from_this<ServingSession> {
public:
  using Closed = std::function<void(ServingSession*)>;
  ServingSession(std::shared_ptr<Connection> connection,
                 std::shared_ptr<ServingContext> context,
                 PendingConnections::Entry entry, Closed on_end);
  void start();
  void close(const Failure& failure);

  void on_header(const Message& message, std::uint64_t payload_bytes,
                 ReadTargets& targets) override;
  bool on_frame(const Message& message) override;
  void on_written() override;
  bool expects_frames() const override;
  void on_closed(const Failure& failure) override;

private:
  void reply(const Message& message);
  void greet(const Hello& hello);
  void reply_rows(const PullRows& pull);
  void reply_memory(const PullMemory& pull);
  void refuse(std::uint64_t request, Errc code, std::string what);
  bool stale(std::uint64_t request, Incarnation theirs);
  void send_payload(const Message& message);

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<ServingContext> context_;
  PendingConnections::Entry entry_; ///< until greeted
  Closed on_end_;
  Hello hello_;
  std::vector<PayloadPart> payload_; ///< of the reply being made
  bool greeted_ = false;
  bool ended_ = false;
};

} // namespace troupe::net
