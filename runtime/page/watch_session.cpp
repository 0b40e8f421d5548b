#include "runtime/page/watch_session.hpp"

#include "config/base/log.hpp"

#include <boost/asio/buffer.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace troupe::runtime {

namespace {

namespace beast = boost::beast;

/// Twice the drainers' rate: an event is sent at most 75 ms after it happened.
constexpr auto look_period = std::chrono::milliseconds{25};
constexpr std::size_t largest_wish_bytes = 1024;

/// Returns the step that a wish names; nothing: it has no such number.
std::optional<std::uint32_t> wished_step(const nlohmann::json& wish,
                                         const char* name) {
  const auto found = wish.find(name);
  if (found == wish.end() || !found->is_number_unsigned()
      || found->get<std::uint64_t>()
           > std::numeric_limits<std::uint32_t>::max())
    return std::nullopt;
  return found->get<std::uint32_t>();
}

} // namespace

WatchSession::WatchSession(boost::asio::ip::tcp::socket socket,
                           std::unique_ptr<RunFeed> feed,
                           std::shared_ptr<const std::atomic<bool>> closing)
  : socket_(std::move(socket)),
    timer_(socket_.get_executor()),
    closing_(std::move(closing)),
    feed_(std::move(feed)) {}

void WatchSession::start(const Request& request) {
  socket_.read_message_max(largest_wish_bytes);
  socket_.async_accept(request, [self = shared_from_this()](auto error) {
    if (error)
      return;
    self->listen();
    self->guarded([&] { self->tick(); });
  });
}

/// Runs a handler: a folder that cannot be read ends the connection, and the
/// page connects again.
template <class Body>
void WatchSession::guarded(Body&& body) {
  try {
    body();
  } catch (const std::exception& error) {
    log::runtime.warn(std::string("the page loses a viewer: ") + error.what());
    boost::system::error_code ignored;
    beast::get_lowest_layer(socket_).close(ignored);
    end();
  }
}

/// Reads what the viewer wants to see; also replies to pings and notices that
/// it has left.
void WatchSession::listen() {
  socket_.async_read(received_, [self = shared_from_this()](auto error, auto) {
    if (error)
      return self->end();
    self->take_wish();
    self->received_.clear();
    self->listen();
  });
}

/// Takes {"step": number}: the step whose events the viewer wants, 0: the
/// newest; and {"samples": number}. Anything else is ignored.
void WatchSession::take_wish() {
  const auto bytes = received_.data();
  const auto* const text = static_cast<const char*>(bytes.data());
  const auto wish
    = nlohmann::json::parse(text, text + bytes.size(), nullptr, false);
  if (!wish.is_object())
    return;
  if (const auto step = wished_step(wish, "step"))
    feed_->show(*step);
  if (const auto step = wished_step(wish, "samples"))
    feed_->show_samples(*step);
}

void WatchSession::end() {
  ended_ = true;
  timer_.cancel();
}

void WatchSession::tick() {
  if (ended_)
    return;
  const bool last = *closing_; // before looking: nothing is missed
  for (auto& message : feed_->next())
    outbox_.push_back(std::move(message));
  if (!outbox_.empty())
    return send_next();
  if (last)
    return socket_.async_close(beast::websocket::close_code::going_away,
                               [self = shared_from_this()](auto) {});
  timer_.expires_after(look_period);
  timer_.async_wait([self = shared_from_this()](auto) {
    self->guarded([&] { self->tick(); });
  });
}

void WatchSession::send_next() {
  if (ended_)
    return;
  if (outbox_.empty())
    return tick();
  socket_.binary(outbox_.front().binary);
  socket_.async_write(boost::asio::buffer(outbox_.front().bytes),
                      [self = shared_from_this()](auto error, auto) {
                        if (error)
                          return self->end();
                        self->outbox_.pop_front();
                        self->guarded([&] { self->send_next(); });
                      });
}

} // namespace troupe::runtime
