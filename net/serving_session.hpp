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

namespace troupe::net {

/// What all sessions of a plane share.
struct ServingContext {
  std::string token;
  std::string name; ///< of this process, for refusals: "worker 1"
  std::atomic<const Stash*> stash = nullptr;
  std::shared_ptr<ExportTable> exports = std::make_shared<ExportTable>();
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

  ReadTargets on_header(Message message, std::uint64_t payload_bytes) override;
  bool on_frame() override;
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
  void send_counted(const Message& message, std::vector<Buffer> payload);

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<ServingContext> context_;
  Closed on_end_;
  Message message_;
  Hello hello_;
  bool greeted_ = false;
  bool ended_ = false;
  bool paused_ = false; ///< too many answers wait
};

} // namespace troupe::net
