// The serving end of one connection: checks the token, then answers pulls of
// rows from the stash and of memory from the exports. Lives on the I/O thread.
#pragma once

#include "net/connection.hpp"
#include "net/data_plane.hpp"
#include "net/exports.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::net {

/// What all sessions of a plane share.
struct ServingContext {
  std::string token;
  std::string name; ///< of this process, for refusals: "worker 1"
  std::atomic<const Stash*> stash = nullptr;
  ExportTable exports;
  std::atomic<std::uint32_t> incarnation = 0;
  std::atomic<std::uint64_t> bytes_sent = 0;
  GroupSocketHandler on_group_socket; ///< on the I/O thread only
};

class ServingSession : public ConnectionHandler,
                       public std::enable_shared_from_this<ServingSession> {
public:
  using Closed = std::function<void(ServingSession*)>;
  ServingSession(std::shared_ptr<Connection> connection,
                 std::shared_ptr<ServingContext> context, Closed on_end);
  void start();
  void close(const Failure& failure);

  void on_header(const Message& message, std::uint64_t payload_bytes,
                 ReadTargets& targets) override;
  bool on_frame(const Message& message) override;
  void on_written() override;
  bool expects_frames() const override;
  void on_closed(const Failure& failure) override;

private:
  void answer(const Message& message);
  void greet(const Hello& hello);
  void answer_rows(const PullRows& pull);
  void answer_memory(const PullMemory& pull);
  void refuse(std::uint64_t request, Errc code, std::string what);
  bool stale(std::uint64_t request, Incarnation theirs);
  void send_payload(const Message& message);

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<ServingContext> context_;
  Closed on_end_;
  Hello hello_;
  std::vector<PayloadPart> payload_; ///< of the answer that is made
  bool greeted_ = false;
  bool ended_ = false;
};

} // namespace troupe::net
