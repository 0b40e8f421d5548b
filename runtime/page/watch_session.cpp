#include "runtime/page/watch_session.hpp"

#include "config/base/log.hpp"
#include "runtime/trace/run_graph.hpp"

#include <boost/asio/buffer.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace troupe::runtime {

namespace {

using nlohmann::json;
namespace beast = boost::beast;

/// Twice the drainers' rate: an event is sent at most 75 ms after it happened.
constexpr auto look_period = std::chrono::milliseconds{25};
/// Limit per round: a finished run of gigabytes is sent in portions.
constexpr std::size_t portion_bytes = std::size_t{4} << 20;
constexpr std::size_t portion_of_lines = std::size_t{1} << 20;
/// Older events of a long run are left out, and of its texts what the page has
/// no room for: samples hold all their tokens.
constexpr std::uint64_t history_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t history_of_texts = std::uint64_t{4} << 20;

/// History of one worker's log; a run has many.
constexpr std::uint64_t history_of_a_worker = std::uint64_t{256} << 10;

/// Returns lines of JSON as one message; invalid UTF-8 becomes U+FFFD, never an
/// error.
std::string text_message(const std::string& type, const std::string& text) {
  return json{{"type", type}, {"text", text}}.dump(
    -1, ' ', false, json::error_handler_t::replace);
}

} // namespace

WatchSession::WatchSession(boost::asio::ip::tcp::socket socket,
                           const RunFolder& folder,
                           std::shared_ptr<const std::atomic<bool>> closing)
  : socket_(std::move(socket)),
    timer_(socket_.get_executor()),
    folder_(folder),
    closing_(std::move(closing)),
    trace_(folder, history_bytes) {
  lines_.push_back({folder.metrics_file(), "metrics", history_bytes, {}});
  lines_.push_back({folder.failures_file(), "failures", history_of_texts, {}});
  lines_.push_back({folder.samples_file(), "samples", history_of_texts, {}});
  lines_.push_back({folder.log_file(), "log", history_of_texts, {}});
}

void WatchSession::start(const Request& request) {
  socket_.async_accept(request, [self = shared_from_this()](auto error) {
    if (error)
      return;
    self->listen();
    self->guarded([&] {
      self->outbox_.push_back(
        {false, text_message("run", run_graph_json(self->folder_))});
      self->tick();
    });
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

/// Reads only to reply to pings and to notice that the viewer has left.
void WatchSession::listen() {
  socket_.async_read(ignored_, [self = shared_from_this()](auto error, auto) {
    if (error)
      return self->end();
    self->ignored_.clear();
    self->listen();
  });
}

void WatchSession::end() {
  ended_ = true;
  timer_.cancel();
}

void WatchSession::tick() {
  if (ended_)
    return;
  const bool last = *closing_; // before looking: nothing is missed
  collect();
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

/// Finds new files before any is read, so that the amount to load is known.
void WatchSession::find_files() {
  for (const auto& name : trace_.find_files())
    outbox_.push_back({false, text_message("file", name)});
  find_worker_logs();
  for (auto& lines : lines_)
    open_lines(lines);
}

void WatchSession::collect() {
  find_files();
  if (!loaded_)
    to_load_ = std::max(to_load_, unread_bytes());
  for (const auto& chunk : trace_.read(portion_bytes)) {
    Message message{true, std::string(sizeof chunk.file, '\0')};
    std::memcpy(message.bytes.data(), &chunk.file, sizeof chunk.file);
    message.bytes += chunk.bytes;
    outbox_.push_back(std::move(message));
  }
  for (auto& lines : lines_)
    collect_lines(lines);
  collect_status();
  if (!loaded_)
    tell_loading();
}

std::uint64_t WatchSession::unread_bytes() const {
  auto bytes = trace_.unread_bytes();
  for (const auto& lines : lines_)
    bytes += lines.file ? lines.file->unread_bytes() : 0;
  return bytes;
}

/// Sends how much of what existed the page has: until it has all, it shows only
/// this share, since its picture of the run is incomplete.
void WatchSession::tell_loading() {
  const auto unread = unread_bytes();
  loaded_ = unread == 0;
  const auto percent
    = loaded_ ? 100 : 100 - (100 * unread + to_load_ - 1) / to_load_;
  outbox_.push_back({false, text_message("loading", std::to_string(percent))});
}

/// Finds logs of workers as they are started, or as they join from elsewhere.
void WatchSession::find_worker_logs() {
  std::error_code none;
  const auto logs = folder_.worker_log(WorkerId{0}).parent_path();
  std::filesystem::directory_iterator entry(logs, none);
  for (; !none && entry != std::filesystem::directory_iterator();
       entry.increment(none)) {
    const auto& file = entry->path();
    const auto worker = RunFolder::worker_of_log(file);
    if (!worker || !worker_logs_.insert(file.filename().string()).second)
      continue;
    lines_.push_back(
      {file, "log worker " + to_string(*worker), history_of_a_worker, {}});
  }
}

void WatchSession::open_lines(Lines& lines) {
  std::error_code none;
  if (!lines.file && std::filesystem::exists(lines.path, none))
    lines.file
      = std::make_unique<LineFollower>(lines.path, lines.history_bytes);
}

void WatchSession::collect_lines(Lines& lines) {
  if (!lines.file)
    return;
  if (auto text = lines.file->read(portion_of_lines); !text.empty())
    outbox_.push_back({false, text_message(lines.type, text)});
}

/// Sends status.json, which is replaced as a whole and so compared as a whole.
void WatchSession::collect_status() {
  std::ifstream file(folder_.status_file());
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text == std::exchange(status_, text))
    return;
  outbox_.push_back({false, text_message("status", text)});
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
