// Tensors between processes: one listener, one connection per peer that is
// pulled from, one I/O thread. A frame is a short prelude, a msgpack header and
// raw bytes; sending never copies the bytes, receiving reads them into their
// final place. Consumers pull from holders; nothing is pushed. Every pull has a
// deadline on progress and fails at once if its peer dies (I7).
#pragma once

#include "config/base/defaults.hpp"
#include "config/base/error.hpp"
#include "config/base/ids.hpp"
#include "net/base/rows.hpp"
#include "net/data_plane/exports.hpp"
#include "net/data_plane/memory_pull.hpp"
#include "net/data_plane/stash.hpp"
#include "net/transport/peer_socket.hpp"

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
  WorkerId self; ///< pulls from self stay in the process
  std::string bind_address = "127.0.0.1"; ///< loopback by default
  std::uint16_t port = 0;                 ///< 0: any free port
  std::string token; ///< the run's token, which peers must show
  std::shared_ptr<const TlsContext> tls; ///< nullptr: plaintext
  std::chrono::milliseconds progress_deadline = defaults::pull_deadline;
};

using RowsResult = std::variant<Rows, Failure>;
using RowsDone = std::function<void(RowsResult)>;
/// Receives a socket that a peer opens for a collective group: (group, rank of
/// the peer, socket).
using GroupSocketHandler
  = std::function<void(std::string group, std::uint32_t rank, PeerSocket)>;

class DataPlane {
public:
  /// Listens and starts the I/O thread. Throws FailureError (io) if the port is
  /// taken or the address is not local.
  explicit DataPlane(DataPlaneOptions options);
  ~DataPlane(); ///< calls stop()

  std::uint16_t port() const noexcept;
  /// Returns this plane's options, including the run's token.
  const DataPlaneOptions& options() const noexcept;
  /// Sets the address of worker `peer`; also revives a failed peer.
  void set_peer(WorkerId peer, std::string host, std::uint16_t port);
  /// Returns host and port of the last `set_peer`. Throws InvariantError if
  /// unknown.
  std::pair<std::string, std::uint16_t> address_of(WorkerId peer) const;
  /// Begins an incarnation: pulls of another one are refused (stale); also ends
  /// an `abort`.
  void begin(Incarnation incarnation);

  /// Serves pulls of rows from `stash`, which must outlive the plane.
  void serve_rows(const Stash& stash);
  /// Fetches `keys` of `samples` in this order. `done` runs on the I/O thread
  /// (for self: in the caller): it must pass the result on, not compute. The
  /// buffers come from a pool and return to it with their last copy.
  void pull_rows(WorkerId from, StepId step, std::vector<std::string> keys,
                 std::vector<SampleId> samples, RowsDone done);

  /// Lets peers read `bytes` bytes at `data` as number `id`. The exporter must
  /// ensure that nothing writes there while a pull may run; `keep_alive`
  /// (optional) is held until the last read has ended.
  void export_memory(std::uint64_t id, const void* data, std::uint64_t bytes,
                     std::shared_ptr<void> keep_alive = {});
  /// The same for memory of a device, which is copied as it is read.
  void export_memory(std::uint64_t id, const ExportedMemory& exported);
  /// Withdraws an export: no read starts afterwards, and none is still running;
  /// waits for running ones (a stalled reader's connection is closed at the
  /// deadline). Must not be called from a `done`.
  void withdraw(std::uint64_t id);
  /// Reads into `into`, which must stay valid until `done` is called (always,
  /// and after that nothing writes there).
  void pull_memory(WorkerId from, std::uint64_t id, std::uint64_t source_offset,
                   std::span<std::byte> into, MemoryDone done);
  /// Reads many runs with few requests; `pull` must stay valid as long. From
  /// its second use on it allocates nothing at either end, except over TLS.
  void pull_memory(MemoryPull& pull, std::byte* into, MemoryDone done);

  /// Fails all pending pulls, and every later one until `begin`; others may
  /// still read from this plane.
  void abort_pulls(Failure failure);
  /// Fails all pending pulls, closes every connection, and fails every later
  /// pull until `begin`.
  void abort(Failure failure);
  /// Ends the I/O thread; pending pulls fail (aborted). A second call is no
  /// error.
  void stop();

  /// Sets the receiver of sockets that peers open for collectives
  /// (GroupRegistry).
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
