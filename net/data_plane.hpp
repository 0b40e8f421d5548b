// Tensors between processes: one listener, one connection a peer we pull from,
// one I/O thread. A frame is a short prelude, a msgpack header and raw bytes;
// sending never copies the bytes, receiving reads them into their final place.
// Consumers pull from holders; nothing is pushed. Every pull has a deadline on
// progress and ends at once when its peer dies (I7).
#pragma once

#include "config/defaults.hpp"
#include "config/error.hpp"
#include "config/ids.hpp"
#include "net/memory_pull.hpp"
#include "net/peer_socket.hpp"
#include "net/rows.hpp"
#include "net/stash.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::net {

struct DataPlaneOptions {
  WorkerId self;                          ///< pulls from self stay inside
  std::string bind_address = "127.0.0.1"; ///< loopback unless told otherwise
  std::uint16_t port = 0;                 ///< 0: any free port
  std::string token;                      ///< the run's; peers must show it
  std::shared_ptr<const TlsContext> tls;  ///< nullptr: all goes in clear
  std::chrono::milliseconds progress_deadline = defaults::pull_deadline;
};

using RowsResult = std::variant<Rows, Failure>;
using RowsDone = std::function<void(RowsResult)>;
/// A peer's socket for a group of collectives: (group, rank of the peer, it).
using GroupSocketHandler
  = std::function<void(std::string group, std::uint32_t rank, PeerSocket)>;

class DataPlane {
public:
  /// Listens and starts the I/O thread. Throws FailureError (io) when the port
  /// is taken or the address is not ours.
  explicit DataPlane(DataPlaneOptions options);
  ~DataPlane(); ///< as `stop`

  std::uint16_t port() const noexcept;
  /// The run's token and this plane's options.
  const DataPlaneOptions& options() const noexcept;
  /// Where worker `peer` listens; also revives a peer that was failed.
  void set_peer(WorkerId peer, std::string host, std::uint16_t port);
  /// Host and port as `set_peer` had them. Throws InvariantError if unknown.
  std::pair<std::string, std::uint16_t> address_of(WorkerId peer) const;
  /// Pulls of another incarnation are refused (stale); also ends an `abort`.
  void begin(Incarnation incarnation);

  /// Answers pulls of rows from `stash`, which must outlive the plane.
  void serve_rows(const Stash& stash);
  /// Fetches `keys` of `samples` in this order. `done` runs on the I/O thread
  /// (for self: in the caller): hand the result on, do not compute there. The
  /// buffers come from a pool and return to it with the last copy.
  void pull_rows(WorkerId from, StepId step, std::vector<std::string> keys,
                 std::vector<SampleId> samples, RowsDone done);

  /// Lets peers read `bytes` bytes at `data` as number `id`. Whoever exports
  /// sees to it that nobody writes there while a pull may run; `keep_alive`
  /// (optional) is held until the last read of it ended.
  void export_memory(std::uint64_t id, const void* data, std::uint64_t bytes,
                     std::shared_ptr<void> keep_alive = {});
  /// No read starts afterwards, and none still runs: waits for those that do
  /// (a stalled reader's connection is closed at the deadline). Never call it
  /// from a `done`.
  void withdraw(std::uint64_t id);
  /// Reads into `into`, which must stay until `done` was called (which is
  /// always, and after which nobody writes there).
  void pull_memory(WorkerId from, std::uint64_t id, std::uint64_t source_offset,
                   std::span<std::byte> into, MemoryDone done);
  /// The same of many runs, in few requests; `pull` must stay as long. From its
  /// second time on it allocates nothing at either end, unless over TLS.
  void pull_memory(MemoryPull& pull, std::byte* into, MemoryDone done);

  /// Fails all that is pending, closes every connection, and fails every
  /// later pull until `begin`.
  void abort(Failure failure);
  /// Ends the I/O thread; what is pending fails (aborted). Twice is no error.
  void stop();

  /// Who gets sockets that peers open for collectives (GroupRegistry).
  void on_group_socket(GroupSocketHandler handler);

  struct Counters {
    std::uint64_t bytes_sent = 0, bytes_received = 0, pulls = 0, failures = 0;
  };
  Counters counters() const noexcept;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::net
