#include "net/data_plane/data_plane.hpp"

#include "config/trace/trace.hpp"
#include "net/base/defaults.hpp"
#include "net/base/operation_memory.hpp"
#include "net/data_plane/peer_client.hpp"
#include "net/data_plane/serving_session.hpp"
#include "net/transport/listener.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <cstring>
#include <map>
#include <memory_resource>
#include <mutex>
#include <set>
#include <thread>

namespace troupe::net {

namespace {

std::string process_name(WorkerId self) {
  return "worker " + to_string(self);
}

} // namespace

struct DataPlane::Impl {
  struct PeerAddress {
    std::string host;
    std::uint16_t port = 0;
  };
  explicit Impl(DataPlaneOptions given);

  DataPlaneOptions options;
  std::pmr::synchronized_pool_resource task_memory; ///< for `post`
  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work
    = boost::asio::make_work_guard(io);
  std::shared_ptr<ServingContext> serving = std::make_shared<ServingContext>();
  std::shared_ptr<PullingContext> pulling;
  std::shared_ptr<Listener> listener;
  std::uint16_t port = 0;

  mutable std::mutex mutex; ///< guards the next two members
  bool stopped = false;
  std::map<WorkerId, PeerAddress> addresses;

  std::atomic<std::uint64_t> pulls = 0, failures = 0;

  // only on the I/O thread
  std::map<WorkerId, std::shared_ptr<PeerClient>> clients;
  std::optional<Failure> aborted;
  std::set<std::shared_ptr<ServingSession>> sessions;

  struct Traffic {
    std::uint64_t bytes = 0;
    std::int64_t open_pulls = 0;
  };
  std::mutex traffic_mutex;
  std::map<WorkerId, Traffic> traffic; ///< by holder, for the trace

  std::thread thread; ///< last: everything else exists when it starts

  void accepted(boost::asio::ip::tcp::socket socket, std::string peer,
                PendingConnections::Entry entry);
  /// Returns the client, or the reason why there is none.
  std::variant<std::shared_ptr<PeerClient>, Failure> client_of(WorkerId peer);
  void fail_pulls(const Failure& failure);
  /// Runs `task` on the I/O thread; returns false if that has ended.
  template <class Task>
  bool post(Task task);
  void shut_down();
  void copy_own(const MemoryPull& pull, std::byte* into);
  Failure stopped_failure() const;
  /// Counts a pull that begins (1) or ends (-1); callable from any thread.
  void count_pull(WorkerId from, int change, std::uint64_t bytes);
};

void DataPlane::Impl::count_pull(WorkerId from, int change,
                                 std::uint64_t bytes) {
  if (!trace::enabled())
    return;
  const std::lock_guard lock{traffic_mutex};
  Traffic& sum = traffic[from];
  sum.bytes += bytes;
  sum.open_pulls += change;
  const auto count = [&](const std::string& what, double value) {
    trace::counter(trace::track("data plane", trace::TrackKind::actor),
                   trace::name(what + " worker " + to_string(from)
                               + " > worker " + to_string(options.self)),
                   value);
  };
  count("open_pulls", static_cast<double>(sum.open_pulls));
  if (bytes > 0)
    count("pulled_bytes", static_cast<double>(sum.bytes));
}

DataPlane::Impl::Impl(DataPlaneOptions given)
  : options(std::move(given)),
    pulling(new PullingContext{options.self,
                               options.token,
                               options.tls,
                               options.progress_deadline,
                               BufferPool(kMaxIdleBufferBytes),
                               {},
                               {}}) {
  serving->token = options.token;
  serving->name = process_name(options.self);
  listener = std::make_shared<Listener>(io, "data plane", options.bind_address,
                                        options.port);
  port = listener->port();
  listener->start([this](boost::asio::ip::tcp::socket socket, std::string peer,
                         PendingConnections::Entry entry) {
    accepted(std::move(socket), std::move(peer), std::move(entry));
  });
  thread = std::thread([this] { io.run(); });
}

void DataPlane::Impl::accepted(boost::asio::ip::tcp::socket socket,
                               std::string peer,
                               PendingConnections::Entry entry) {
  auto connection = std::make_shared<Connection>(
    std::move(socket), std::move(peer), options.progress_deadline);
  if (options.tls)
    connection->secure(*options.tls, TlsSession::Role::accepts);
  auto session = std::make_shared<ServingSession>(
    std::move(connection), serving, std::move(entry),
    [this](ServingSession* ended) {
      sessions.erase(ended->shared_from_this());
    });
  sessions.insert(session);
  session->start();
}

template <class Task>
bool DataPlane::Impl::post(Task task) {
  std::lock_guard lock(mutex);
  if (stopped)
    return false;
  boost::asio::post(io,
                    HandlerIn(OperationMemory(&task_memory), std::move(task)));
  return true;
}

Failure DataPlane::Impl::stopped_failure() const {
  return {Errc::aborted, process_name(options.self),
          "the data plane was stopped", ""};
}

std::variant<std::shared_ptr<PeerClient>, Failure>
DataPlane::Impl::client_of(WorkerId peer) {
  if (aborted)
    return *aborted;
  if (auto known = clients.find(peer); known != clients.end())
    return known->second;
  std::lock_guard lock(mutex);
  auto address = addresses.find(peer);
  if (address == addresses.end())
    return Failure{Errc::refused, process_name(peer), "its address is unknown",
                   ""};
  auto client = std::make_shared<PeerClient>(
    io, pulling, peer, address->second.host, address->second.port);
  clients.emplace(peer, client);
  return client;
}

void DataPlane::Impl::shut_down() {
  listener->close();
  const auto open = sessions; // closing removes them from the set
  for (const auto& session : open)
    session->close(stopped_failure());
  fail_pulls(stopped_failure()); // those from callbacks too
  io.stop();
}

DataPlane::DataPlane(DataPlaneOptions options)
  : impl_(std::make_unique<Impl>(std::move(options))) {}

DataPlane::~DataPlane() {
  stop();
}

void DataPlane::stop() {
  {
    std::lock_guard lock(impl_->mutex);
    if (std::exchange(impl_->stopped, true))
      return;
    boost::asio::post(impl_->io, [impl = impl_.get()] { impl->shut_down(); });
  }
  impl_->thread.join();
  impl_->io.restart();
  impl_->io.poll(); // cancelled writes release the memory that they read
}

std::uint16_t DataPlane::port() const noexcept {
  return impl_->port;
}

const DataPlaneOptions& DataPlane::options() const noexcept {
  return impl_->options;
}

void DataPlane::set_peer(WorkerId peer, std::string host, std::uint16_t port) {
  bool moved = false;
  {
    std::lock_guard lock(impl_->mutex);
    Impl::PeerAddress& address = impl_->addresses[peer];
    moved = address.host != host || address.port != port;
    address = {std::move(host), port};
  }
  impl_->post([impl = impl_.get(), peer, moved] {
    auto found = impl->clients.find(peer);
    if (!moved || found == impl->clients.end())
      return;
    auto old = std::move(found->second);
    impl->clients.erase(found);
    old->fail({Errc::stale, process_name(peer), "it moved elsewhere", ""});
  });
}

std::pair<std::string, std::uint16_t>
DataPlane::address_of(WorkerId peer) const {
  std::lock_guard lock(impl_->mutex);
  auto found = impl_->addresses.find(peer);
  TROUPE_CHECK(found != impl_->addresses.end(),
               "no address for worker " + to_string(peer));
  return {found->second.host, found->second.port};
}

void DataPlane::begin(Incarnation incarnation) {
  impl_->serving->incarnation = incarnation.value;
  impl_->post([impl = impl_.get(), incarnation] {
    impl->pulling->incarnation = incarnation;
    impl->aborted.reset();
  });
}

void DataPlane::serve_rows(const Stash& stash) {
  impl_->serving->stash = &stash;
}

void DataPlane::pull_rows(WorkerId from, StepId step,
                          std::vector<std::string> keys,
                          std::vector<SampleId> samples, RowsDone done) {
  ++impl_->pulls;
  if (from == impl_->options.self) {
    const Stash* stash = impl_->serving->stash.load();
    TROUPE_CHECK(stash != nullptr, "no rows are served here");
    return done(stash->get(step, keys, samples));
  }
  impl_->count_pull(from, 1, 0);
  auto counted = std::make_shared<RowsDone>(
    [impl = impl_.get(), from, done = std::move(done)](RowsResult result) {
      const auto* rows = std::get_if<Rows>(&result);
      impl->count_pull(from, -1, rows != nullptr ? rows->size_bytes() : 0);
      if (rows == nullptr)
        ++impl->failures;
      done(std::move(result));
    });
  const bool posted = impl_->post([impl = impl_.get(), from, step, counted,
                                   keys = std::move(keys),
                                   samples = std::move(samples)]() mutable {
    auto client = impl->client_of(from);
    if (const auto* failure = std::get_if<Failure>(&client))
      return (*counted)(*failure);
    std::get<0>(client)->pull_rows(step, std::move(keys), std::move(samples),
                                   std::move(*counted));
  });
  if (!posted)
    (*counted)(impl_->stopped_failure());
}

void DataPlane::export_memory(std::uint64_t id, const void* data,
                              std::uint64_t bytes,
                              std::shared_ptr<void> keep_alive) {
  impl_->serving->exports.add(id, {data, bytes}, std::move(keep_alive));
}

void DataPlane::export_memory(std::uint64_t id,
                              const ExportedMemory& exported) {
  impl_->serving->exports.add(id, exported, {});
}

void DataPlane::withdraw(std::uint64_t id) {
  TROUPE_CHECK(std::this_thread::get_id() != impl_->thread.get_id(),
               "withdraw would wait for the thread it is on");
  impl_->serving->exports.withdraw(id);
}

void DataPlane::pull_memory(WorkerId from, std::uint64_t id,
                            std::uint64_t source_offset,
                            std::span<std::byte> into, MemoryDone done) {
  const ByteRuns all{.source_offset = source_offset, .bytes = into.size()};
  const auto pull = std::make_shared<MemoryPull>(from, id, std::span(&all, 1));
  pull_memory(*pull, into.data(),
              [pull, done = std::move(done)](std::optional<Failure> failure) {
                done(std::move(failure));
              });
}

void DataPlane::Impl::copy_own(const MemoryPull& pull, std::byte* into) {
  const auto memory = serving->exports.read(pull.id());
  TROUPE_CHECK(memory.has_value(),
               "memory " + std::to_string(pull.id()) + " is not exported");
  for (const MemoryRequest& request : pull.requests())
    for (const ByteRuns& part : request.parts)
      for (std::uint64_t i = 0; i < part.runs; ++i)
        memory->copy(part.source_offset + i * part.source_stride, part.bytes,
                     into + part.target_offset + i * part.target_stride);
}

void DataPlane::pull_memory(MemoryPull& pull, std::byte* into,
                            MemoryDone done) {
  ++impl_->pulls;
  if (pull.from() == impl_->options.self) {
    impl_->copy_own(pull, into);
    return done(std::nullopt);
  }
  impl_->count_pull(pull.from(), 1, 0);
  const auto counts = [impl = impl_.get(), &pull](bool failed) {
    impl->count_pull(pull.from(), -1, failed ? 0 : pull.size_bytes());
    impl->failures += failed ? 1 : 0;
  };
  pull.begin(into, counts, std::move(done));
  const bool posted = impl_->post([impl = impl_.get(), &pull] {
    auto client = impl->client_of(pull.from());
    if (const auto* failure = std::get_if<Failure>(&client))
      return pull.end(*failure);
    std::get<0>(client)->pull_memory(pull);
  });
  if (!posted)
    pull.end(impl_->stopped_failure());
}

void DataPlane::Impl::fail_pulls(const Failure& failure) {
  aborted = failure;
  for (auto& [peer, client] : clients)
    client->fail(failure);
}

void DataPlane::abort_pulls(Failure failure) {
  impl_->post([impl = impl_.get(), failure = std::move(failure)] {
    impl->fail_pulls(failure);
  });
}

void DataPlane::abort(Failure failure) {
  impl_->post([impl = impl_.get(), failure = std::move(failure)] {
    impl->fail_pulls(failure);
    const auto open = impl->sessions;
    for (const auto& session : open)
      session->close(failure);
  });
}

void DataPlane::on_group_socket(GroupSocketHandler handler) {
  impl_->post([impl = impl_.get(), handler = std::move(handler)]() mutable {
    impl->serving->on_group_socket = std::move(handler);
  });
}

DataPlane::Counters DataPlane::counters() const noexcept {
  return {impl_->serving->bytes_sent, impl_->pulling->bytes_received,
          impl_->pulls, impl_->failures};
}

} // namespace troupe::net
