#include "net/data_plane/peer_client.hpp"

#include "net/base/defaults.hpp"

#include <boost/asio/connect.hpp>

#include <algorithm>
#include <utility>

namespace troupe::net {

namespace {

constexpr FrameLimits kReplyLimits{defaults::frame_header_limit_bytes,
                                   defaults::frame_payload_limit_bytes};

std::uint64_t request_number(const Message& reply) {
  if (const auto* rows = std::get_if<RowsReply>(&reply))
    return rows->request;
  if (const auto* memory = std::get_if<MemoryReply>(&reply))
    return memory->request;
  if (const auto* refusal = std::get_if<Refusal>(&reply))
    return refusal->request;
  throw WireError("a frame that is no answer");
}

/// Returns the aligned size of a column in the block that holds all columns of
/// a reply.
std::uint64_t aligned_bytes(std::uint64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

std::uint64_t column_bytes(const RowsReply::ColumnHead& column) {
  std::uint64_t elements = 0;
  for (std::uint32_t length : column.lengths)
    elements += length;
  return elements * size_bytes(column.dtype);
}

} // namespace

PeerClient::PeerClient(boost::asio::io_context& io,
                       std::shared_ptr<PullingContext> context, WorkerId peer,
                       std::string host, std::uint16_t port)
  : io_(io),
    context_(std::move(context)),
    peer_(peer),
    host_(std::move(host)),
    port_(port) {}

std::string PeerClient::name() const {
  return "worker " + to_string(peer_) + " (" + host_ + ":"
         + std::to_string(port_) + ")";
}

void PeerClient::pull_rows(StepId step, std::vector<std::string> keys,
                           std::vector<SampleId> samples, RowsDone done) {
  waiting_rows_.push_back(
    {{0, context_->incarnation, step, std::move(keys), std::move(samples)},
     std::move(done)});
  send_waiting();
}

void PeerClient::pull_memory(MemoryPull& pull) {
  pull.send(waiting_memory_, context_->incarnation);
  send_waiting();
}

void PeerClient::send_waiting() {
  if (welcome_)
    send_more();
  else if (!connecting_ && !connection_)
    connect();
}

std::size_t PeerClient::num_asked() const {
  return asked_rows_.size() + asked_memory_.size();
}

/// Sends one request; the next one follows when it is written.
void PeerClient::send_more() {
  const bool was_idle = num_asked() == 0;
  if (!connection_->can_send() || num_asked() >= kMaxRequestsInFlight)
    return;
  if (!waiting_rows_.empty())
    send_rows();
  else if (!waiting_memory_.empty())
    send_memory();
  if (was_idle && num_asked() > 0)
    connection_->watch_progress();
}

void PeerClient::send_rows() {
  const std::uint64_t number = next_request_++;
  RowsRequest& request
    = asked_rows_.emplace(number, std::move(waiting_rows_.front()))
        .first->second;
  waiting_rows_.pop_front();
  request.message.request = number;
  connection_->send(request.message);
}

void PeerClient::send_memory() {
  MemoryRequest& request = waiting_memory_.front();
  asked_memory_.splice(asked_memory_.end(), waiting_memory_,
                       waiting_memory_.begin());
  request.number = next_request_++;
  auto& message = std::get<PullMemory>(pull_);
  message.request = request.number;
  message.incarnation = request.pull->incarnation();
  message.id = request.pull->id();
  message.parts.clear();
  for (const ByteRuns& part : request.parts)
    message.parts.push_back(
      {part.source_offset, part.bytes, part.runs, part.source_stride});
  connection_->send(pull_);
}

void PeerClient::on_written() {
  if (welcome_)
    send_more();
}

void PeerClient::connect() {
  connecting_ = true;
  const std::uint64_t attempt = ++attempt_;
  auto socket = std::make_shared<Connection::Socket>(io_);
  auto timer = std::make_shared<boost::asio::steady_timer>(io_);
  resolver_ = std::make_shared<boost::asio::ip::tcp::resolver>(io_);
  timer->expires_after(std::min<std::chrono::milliseconds>(
    context_->progress_deadline, defaults::connect_within));
  timer->async_wait([self = shared_from_this(),
                     attempt](const boost::system::error_code& e) {
    if (!e && self->connecting_ && self->attempt_ == attempt)
      self->fail({Errc::deadline, self->name(), "no answer to connecting", ""});
  });
  auto done = [self = shared_from_this(), attempt, socket,
               timer](const boost::system::error_code& error) {
    timer->cancel();
    if (!self->connecting_ || self->attempt_ != attempt)
      return;
    if (error)
      return self->fail({Errc::peer_lost, self->name(),
                         "cannot connect: " + error.message(), ""});
    self->connected(std::move(*socket));
  };
  resolver_->async_resolve(
    host_, std::to_string(port_),
    [socket, done](const boost::system::error_code& error,
                   const boost::asio::ip::tcp::resolver::results_type& found) {
      if (error)
        return done(error);
      boost::asio::async_connect(
        *socket, found,
        [done](const boost::system::error_code& connect_error,
               const boost::asio::ip::tcp::endpoint&) { done(connect_error); });
    });
}

void PeerClient::connected(Connection::Socket socket) {
  connecting_ = false;
  connection_ = std::make_shared<Connection>(std::move(socket), name(),
                                             context_->progress_deadline);
  if (context_->tls)
    connection_->secure(*context_->tls, TlsSession::Role::connects);
  connection_->start(shared_from_this(), kReplyLimits);
  connection_->send(
    Hello{kWireProtocol, context_->token, context_->self, "", 0});
}

bool PeerClient::expects_frames() const {
  return !welcome_ || num_asked() > 0;
}

PeerClient::MemoryRequests::iterator
PeerClient::asked_memory(std::uint64_t number) {
  return std::ranges::find(asked_memory_, number, &MemoryRequest::number);
}

void PeerClient::on_header(const Message& message, std::uint64_t bytes,
                           ReadTargets& targets) {
  if (!welcome_ || std::holds_alternative<Refusal>(message)) {
    if (bytes != 0)
      throw WireError("a payload where none belongs");
    return;
  }
  if (const auto* rows = std::get_if<RowsReply>(&message))
    return rows_targets(*rows, bytes, targets);
  if (const auto* memory = std::get_if<MemoryReply>(&message))
    return memory_targets(*memory, bytes, targets);
  throw WireError("a frame that is no answer");
}

void PeerClient::memory_targets(const MemoryReply& reply, std::uint64_t bytes,
                                ReadTargets& targets) {
  const auto request = asked_memory(reply.request);
  if (request == asked_memory_.end())
    throw WireError("an answer to nothing we asked");
  if (bytes != request->size_bytes)
    throw WireError("an answer of another size than we asked for");
  for (const ByteRuns& part : request->parts)
    for (std::uint64_t i = 0; i < part.runs; ++i)
      targets.emplace_back(request->pull->into() + part.target_offset
                             + i * part.target_stride,
                           part.bytes);
}

void PeerClient::rows_targets(const RowsReply& reply, std::uint64_t bytes,
                              ReadTargets& targets) {
  const auto request = asked_rows_.find(reply.request);
  if (request == asked_rows_.end())
    throw WireError("an answer to nothing we asked");
  const PullRows& pull = request->second.message;
  if (reply.columns.size() != pull.keys.size())
    throw WireError("an answer with other columns than we asked for");
  std::uint64_t sum = 0, block_bytes = 0;
  for (std::size_t i = 0; i < reply.columns.size(); ++i) {
    const RowsReply::ColumnHead& column = reply.columns[i];
    if (column.key != pull.keys[i]
        || column.lengths.size() != pull.samples.size())
      throw WireError("an answer with other rows than we asked for");
    sum += column_bytes(column);
    block_bytes += aligned_bytes(column_bytes(column));
  }
  if (sum != bytes)
    throw WireError("rows of another size than their header says");
  const Buffer block = context_->pool.take(block_bytes);
  rows_ = {};
  rows_.samples = pull.samples;
  std::uint64_t next = 0;
  for (const RowsReply::ColumnHead& column : reply.columns) {
    const std::uint64_t size = column_bytes(column);
    Buffer data = block.slice(next, size);
    next += aligned_bytes(size);
    targets.push_back(boost::asio::buffer(data.data(), size));
    rows_.columns.push_back(
      {column.key, column.dtype, column.lengths, std::move(data)});
  }
}

bool PeerClient::on_frame(const Message& reply) {
  if (!welcome_) {
    greeted(reply);
    return connection_ != nullptr;
  }
  const auto* refusal = std::get_if<Refusal>(&reply);
  const std::uint64_t number = request_number(reply);
  if (const auto memory = asked_memory(number); memory != asked_memory_.end()) {
    if (refusal == nullptr)
      context_->bytes_received += memory->size_bytes;
    // detached before a callback, which may pull again or fail the client
    MemoryRequests ended;
    ended.splice(ended.end(), asked_memory_, memory);
    send_more();
    ended.front().pull->came_back(ended, ended.begin(),
                                  refusal ? &refusal->failure : nullptr);
  } else if (auto rows = asked_rows_.extract(number)) {
    if (refusal == nullptr)
      context_->bytes_received += rows_.size_bytes();
    send_more();
    rows.mapped().done(refusal ? RowsResult(refusal->failure)
                               : RowsResult(std::exchange(rows_, Rows{})));
  } else {
    throw WireError(refusal ? "refused: " + refusal->failure.what
                            : "an answer to nothing we asked");
  }
  return connection_ != nullptr;
}

void PeerClient::greeted(const Message& reply) {
  if (const auto* refusal = std::get_if<Refusal>(&reply)) {
    Failure failure = refusal->failure;
    failure.who = name();
    return connection_->close(failure);
  }
  if (!std::holds_alternative<Welcome>(reply))
    throw WireError("no welcome");
  welcome_ = true;
  send_more();
}

void PeerClient::fail(const Failure& failure) {
  if (connection_)
    return connection_->close(failure); // on_closed continues
  on_closed(failure);
}

void PeerClient::on_closed(const Failure& failure) {
  connection_ = nullptr;
  connecting_ = welcome_ = false;
  ++attempt_;
  rows_ = {};
  // a callback may pull again: only what is pending now fails
  auto asked = std::exchange(asked_rows_, {});
  auto unsent = std::exchange(waiting_rows_, {});
  MemoryRequests memory = std::exchange(asked_memory_, {});
  memory.splice(memory.end(), waiting_memory_);
  for (auto& [number, request] : asked)
    request.done(failure);
  for (RowsRequest& request : unsent)
    request.done(failure);
  while (!memory.empty())
    memory.front().pull->came_back(memory, memory.begin(), &failure);
}

} // namespace troupe::net
