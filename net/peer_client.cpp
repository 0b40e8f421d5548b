#include "net/peer_client.hpp"

#include "net/defaults.hpp"

#include <boost/asio/connect.hpp>

#include <algorithm>
#include <utility>

namespace troupe::net {

namespace {

constexpr FrameLimits kAnswerLimits{defaults::frame_header_limit_bytes,
                                    defaults::frame_payload_limit_bytes};

std::uint64_t request_number(const Message& answer) {
  if (const auto* rows = std::get_if<RowsAnswer>(&answer))
    return rows->request;
  if (const auto* memory = std::get_if<MemoryAnswer>(&answer))
    return memory->request;
  if (const auto* refusal = std::get_if<Refusal>(&answer))
    return refusal->request;
  throw WireError("a frame that is no answer");
}

/// A column's start in the block that holds all columns of an answer.
std::uint64_t aligned_bytes(std::uint64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

std::uint64_t column_bytes(const RowsAnswer::ColumnHead& column) {
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
  submit({PullRows{0, context_->incarnation, step, std::move(keys),
                   std::move(samples)},
          std::move(done),
          {},
          {}});
}

void PeerClient::pull_memory(std::uint64_t id,
                             std::span<const PulledRuns> parts,
                             MemoryDone done) {
  auto requests = cut_requests(parts);
  auto pull = std::make_shared<MemoryPull>();
  pull->done = std::move(done);
  pull->requests = requests.size();
  for (MemoryRequest& request : requests) {
    PullMemory message{0, context_->incarnation, id, {}};
    for (const PulledRuns& part : request.parts)
      message.parts.push_back(
        {part.source_offset, part.run_bytes, part.runs, part.source_stride});
    submit({std::move(message), {}, pull, std::move(request)});
  }
}

void PeerClient::submit(Request request) {
  waiting_.push_back(std::move(request));
  if (welcome_)
    send_more();
  else if (!connecting_ && !connection_)
    connect();
}

void PeerClient::send_more() {
  const bool was_idle = on_the_way_.empty();
  while (!waiting_.empty() && on_the_way_.size() < kMaxRequestsInFlight) {
    const std::uint64_t number = next_request_++;
    Request request = std::move(waiting_.front());
    waiting_.pop_front();
    if (auto* rows = std::get_if<PullRows>(&request.message))
      rows->request = number;
    else
      std::get<PullMemory>(request.message).request = number;
    auto [placed, fresh] = on_the_way_.emplace(number, std::move(request));
    connection_->send(placed->second.message);
  }
  if (was_idle && !on_the_way_.empty())
    connection_->watch_progress();
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
  connection_->start(shared_from_this(), kAnswerLimits);
  connection_->send(
    Hello{kWireProtocol, context_->token, context_->self, "", 0});
}

bool PeerClient::expects_frames() const {
  return !welcome_ || !on_the_way_.empty();
}

ReadTargets PeerClient::on_header(Message message, std::uint64_t bytes) {
  answer_ = std::move(message);
  if (!welcome_ || std::holds_alternative<Refusal>(answer_)) {
    if (bytes != 0)
      throw WireError("a payload where none belongs");
    return {};
  }
  auto found = on_the_way_.find(request_number(answer_));
  if (found == on_the_way_.end())
    throw WireError("an answer to nothing we asked");
  if (const auto* rows = std::get_if<RowsAnswer>(&answer_))
    return rows_targets(*rows, bytes);
  const Request& request = found->second;
  if (!request.memory || bytes != request.into.size_bytes)
    throw WireError("an answer of another size than we asked for");
  ReadTargets targets;
  targets.reserve(request.into.runs);
  for (const PulledRuns& part : request.into.parts)
    for (std::uint64_t i = 0; i < part.runs; ++i)
      targets.push_back(
        boost::asio::buffer(part.into + i * part.into_stride, part.run_bytes));
  return targets;
}

ReadTargets PeerClient::rows_targets(const RowsAnswer& answer,
                                     std::uint64_t bytes) {
  const Request& request = on_the_way_.at(answer.request);
  const auto* pull = std::get_if<PullRows>(&request.message);
  if (pull == nullptr || answer.columns.size() != pull->keys.size())
    throw WireError("an answer with other columns than we asked for");
  std::uint64_t sum = 0, block_bytes = 0;
  for (std::size_t i = 0; i < answer.columns.size(); ++i) {
    const RowsAnswer::ColumnHead& column = answer.columns[i];
    if (column.key != pull->keys[i]
        || column.lengths.size() != pull->samples.size())
      throw WireError("an answer with other rows than we asked for");
    sum += column_bytes(column);
    block_bytes += aligned_bytes(column_bytes(column));
  }
  if (sum != bytes)
    throw WireError("rows of another size than their header says");
  const Buffer block = context_->pool.take(block_bytes);
  ReadTargets targets;
  rows_ = {};
  rows_.samples = pull->samples;
  std::uint64_t next = 0;
  for (const RowsAnswer::ColumnHead& column : answer.columns) {
    const std::uint64_t size = column_bytes(column);
    Buffer data = block.slice(next, size);
    next += aligned_bytes(size);
    targets.push_back(boost::asio::buffer(data.data(), size));
    rows_.columns.push_back(
      {column.key, column.dtype, column.lengths, std::move(data)});
  }
  return targets;
}

bool PeerClient::on_frame() {
  const Message answer = std::exchange(answer_, Welcome{});
  if (!welcome_) {
    greeted(answer);
    return connection_ != nullptr;
  }
  auto found = on_the_way_.find(request_number(answer));
  if (found == on_the_way_.end()) {
    if (const auto* refusal = std::get_if<Refusal>(&answer))
      throw WireError("refused: " + refusal->failure.what);
    throw WireError("an answer to nothing we asked");
  }
  Request request = std::move(found->second);
  on_the_way_.erase(found);
  send_more();
  if (const auto* refusal = std::get_if<Refusal>(&answer))
    request_failed(std::move(request), refusal->failure);
  else
    request_done(std::move(request));
  return connection_ != nullptr;
}

void PeerClient::greeted(const Message& answer) {
  if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    Failure failure = refusal->failure;
    failure.who = name();
    return connection_->close(failure);
  }
  if (!std::holds_alternative<Welcome>(answer))
    throw WireError("no welcome");
  welcome_ = true;
  send_more();
}

void PeerClient::request_done(Request request) {
  context_->bytes_received
    += request.memory ? request.into.size_bytes : rows_.size_bytes();
  if (request.rows_done)
    return request.rows_done(std::exchange(rows_, Rows{}));
  MemoryPull& pull = *request.memory;
  if (--pull.requests == 0)
    pull.done(pull.failure);
}

void PeerClient::request_failed(Request request, const Failure& failure) {
  if (request.rows_done)
    return request.rows_done(failure);
  MemoryPull& pull = *request.memory;
  if (!pull.failure)
    pull.failure = failure;
  if (--pull.requests == 0)
    pull.done(pull.failure);
}

void PeerClient::fail(const Failure& failure) {
  if (connection_)
    return connection_->close(failure); // comes back through on_closed
  on_closed(failure);
}

void PeerClient::on_closed(const Failure& failure) {
  connection_ = nullptr;
  connecting_ = welcome_ = false;
  ++attempt_;
  rows_ = {};
  // A callback may pull again: only what is here now fails.
  std::map<std::uint64_t, Request> lost = std::exchange(on_the_way_, {});
  std::deque<Request> unsent = std::exchange(waiting_, {});
  for (auto& [number, request] : lost)
    request_failed(std::move(request), failure);
  for (Request& request : unsent)
    request_failed(std::move(request), failure);
}

} // namespace troupe::net
