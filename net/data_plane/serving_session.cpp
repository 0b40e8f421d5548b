#include "net/data_plane/serving_session.hpp"

#include "config/base/log.hpp"
#include "net/base/defaults.hpp"

#include <utility>

namespace troupe::net {

namespace {

constexpr FrameLimits kStrangerLimits{kMaxHelloBytes, 0};
/// Requests contain names and samples, never a payload.
constexpr FrameLimits kRequestLimits{defaults::frame_header_limit_bytes, 0};

} // namespace

ServingSession::ServingSession(std::shared_ptr<Connection> connection,
                               std::shared_ptr<ServingContext> context,
                               PendingConnections::Entry entry, Closed on_end)
  : connection_(std::move(connection)),
    context_(std::move(context)),
    entry_(std::move(entry)),
    on_end_(std::move(on_end)) {}

void ServingSession::start() {
  entry_.when_late([self = weak_from_this()] {
    if (const auto late = self.lock())
      late->close({Errc::deadline, late->connection_->peer(),
                   "it did not say who it is", ""});
  });
  connection_->start(shared_from_this(), kStrangerLimits);
}

void ServingSession::close(const Failure& failure) {
  connection_->close(failure);
}

bool ServingSession::expects_frames() const {
  return !greeted_; // an unknown peer must send a frame, a known one may be
                    // silent
}

void ServingSession::on_header(const Message&, std::uint64_t, ReadTargets&) {}

/// The next request is read once the kernel has the whole reply; its buffers
/// keep the peer busy meanwhile.
bool ServingSession::on_frame(const Message& message) {
  reply(message);
  return false;
}

void ServingSession::on_written() {
  if (greeted_ && !hello_.group.empty()) {
    PeerSocket socket = connection_->release();
    on_closed({});
    if (socket.number() >= 0)
      context_->on_group_socket(hello_.group, hello_.rank, std::move(socket));
    return;
  }
  if (!ended_)
    connection_->resume_reading();
}

void ServingSession::on_closed(const Failure& failure) {
  entry_.leave();
  if (std::exchange(ended_, true))
    return;
  if (failure.code == Errc::refused)
    log::warn_of_stranger(log::net, "refused " + connection_->peer() + ": "
                                      + failure.what);
  on_end_(this);
}

void ServingSession::reply(const Message& message) {
  if (const auto* hello = std::get_if<Hello>(&message); hello && !greeted_)
    return greet(*hello);
  if (!greeted_)
    throw WireError("the first frame is no hello");
  if (const auto* rows = std::get_if<PullRows>(&message))
    return reply_rows(*rows);
  if (const auto* memory = std::get_if<PullMemory>(&message))
    return reply_memory(*memory);
  throw WireError("a frame that is no request");
}

void ServingSession::greet(const Hello& hello) {
  std::string reason;
  if (!same_token(hello.token, context_->token))
    reason = "wrong token";
  else if (hello.protocol != kWireProtocol)
    reason = "another version of the protocol";
  else if (!hello.group.empty() && !context_->on_group_socket)
    reason = "no groups here";
  if (!reason.empty()) {
    Failure failure{Errc::refused, context_->name, reason, ""};
    connection_->send(Refusal{0, failure});
    ended_ = true;
    log::warn_of_stranger(log::net,
                          "refused " + connection_->peer() + ": " + reason);
    connection_->close_after_writing(failure);
    return on_end_(this);
  }
  greeted_ = true;
  entry_.leave();
  hello_ = hello;
  connection_->set_limits(kRequestLimits);
  connection_->send(Welcome{});
}

bool ServingSession::stale(std::uint64_t request, Incarnation theirs) {
  const std::uint32_t ours = context_->incarnation.load();
  if (theirs.value == ours)
    return false;
  refuse(request, Errc::stale,
         "a pull of incarnation " + to_string(theirs) + ", here is "
           + std::to_string(ours));
  return true;
}

void ServingSession::reply_rows(const PullRows& pull) {
  if (stale(pull.request, pull.incarnation))
    return;
  const Stash* stash = context_->stash.load();
  if (stash == nullptr)
    return refuse(pull.request, Errc::bug, "no rows are served here");
  std::vector<GatheredColumn> columns;
  try {
    columns = stash->gather(pull.step, pull.keys, pull.samples);
  } catch (const InvariantError& error) {
    return refuse(pull.request, Errc::bug, error.what());
  }
  RowsReply head{pull.request, {}};
  for (GatheredColumn& column : columns) {
    head.columns.push_back(
      {std::move(column.key), column.dtype, std::move(column.lengths)});
    for (Piece& piece : column.pieces) {
      const auto bytes = piece.data.size_bytes();
      payload_.push_back({std::move(piece.data), {.run_bytes = bytes}});
    }
  }
  send_payload(head);
}

namespace {

/// Returns true if the runs are within a memory of that size and not more than
/// one request may ask for.
bool may_ask(std::span<const MemoryRuns> parts, std::uint64_t memory_bytes) {
  std::uint64_t runs = 0, bytes = 0;
  for (const MemoryRuns& part : parts) {
    if (part.runs == 0 || part.runs > kMaxRequestRuns - runs
        || part.run_bytes > kMemoryChunkBytes
        || part.offset_bytes > memory_bytes
        || part.run_bytes > memory_bytes - part.offset_bytes)
      return false;
    runs += part.runs;
    bytes += part.runs * part.run_bytes;
    const auto rest = memory_bytes - part.offset_bytes - part.run_bytes;
    if (part.runs > 1 && part.stride_bytes > rest / (part.runs - 1))
      return false;
  }
  return bytes <= kMemoryChunkBytes;
}

/// Copies runs of a device's memory; they follow each other in the copy.
PayloadPart read_runs(const ExportTable::Found& exported,
                      const MemoryRuns& part) {
  const std::uint64_t size_bytes = part.runs * part.run_bytes;
  const Buffer copy = make_buffer(size_bytes);
  for (std::uint64_t i = 0; i < part.runs; ++i)
    exported.memory->read(exported.bytes.data() + part.offset_bytes
                            + i * part.stride_bytes,
                          copy.data() + i * part.run_bytes, part.run_bytes);
  return {copy, {.run_bytes = size_bytes}};
}

} // namespace

void ServingSession::reply_memory(const PullMemory& pull) {
  if (stale(pull.request, pull.incarnation))
    return;
  const auto exported = context_->exports.read(pull.id);
  if (!exported || !may_ask(pull.parts, exported->bytes.size_bytes()))
    return refuse(pull.request, Errc::bug,
                  "memory " + std::to_string(pull.id)
                    + " has no such bytes, or too many are asked for");
  for (const MemoryRuns& part : pull.parts)
    if (exported->memory == nullptr)
      payload_.push_back({exported->bytes, part});
    else
      payload_.push_back(read_runs(*exported, part));
  send_payload(MemoryReply{pull.request});
}

void ServingSession::send_payload(const Message& message) {
  for (const auto& [memory, runs] : payload_)
    context_->bytes_sent += runs.runs * runs.run_bytes;
  connection_->send(message, payload_);
  payload_.clear();
}

void ServingSession::refuse(std::uint64_t request, Errc code,
                            std::string what) {
  connection_->send(
    Refusal{request, {code, context_->name, std::move(what), ""}});
}

} // namespace troupe::net
