#include "runtime/page/trace_feed.hpp"

#include "config/trace/trace_segments.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::runtime {

namespace {

using nlohmann::json;

/// Events of all traces together that a viewer has: a browser reads them in
/// about a second.
constexpr std::uint64_t viewer_bytes = std::uint64_t{32} << 20;
constexpr std::uint64_t least_history = std::uint64_t{1} << 20;
/// Events around a step of the past: their messages are less than the page
/// keeps, so that none of the first are forgotten.
constexpr std::uint64_t part_bytes = std::uint64_t{16} << 20;
constexpr std::size_t portion_to_align = std::size_t{4} << 20;

std::uint64_t history_of_each(const RunFolder& folder) {
  const auto traces = trace::list_traces(folder.trace_folder()).size();
  return std::max<std::uint64_t>(
    least_history, viewer_bytes / std::max<std::uint64_t>(1, traces));
}

} // namespace

TraceFeed::TraceFeed(RunFolder folder)
  : folder_(std::move(folder)),
    index_(folder_) {}

void TraceFeed::show(std::uint32_t step) {
  wanted_step_ = step;
}

bool TraceFeed::begin(std::vector<FeedMessage>& found) {
  if (wanted_step_)
    begin_part(*std::exchange(wanted_step_, std::nullopt), found);
  if (follower_)
    return false;
  follower_ = make_follower();
  names_.clear();
  clocks_ = FeedClocks();
  align_history();
  return true;
}

void TraceFeed::begin_part(std::uint32_t step,
                           std::vector<FeedMessage>& found) {
  window_.reset();
  json shown;
  if (step != 0) {
    index_.update();
    window_ = index_.around(step - 1, part_bytes);
    shown = {{"step", step},
             {"first", window_->first_step + 1},
             {"last", window_->last_step + 1}};
  }
  found.push_back(text_message("part", shown.dump()));
  follower_ = nullptr;
}

std::unique_ptr<TraceFollower> TraceFeed::make_follower() const {
  if (window_)
    return std::make_unique<TraceFollower>(folder_, *window_);
  return std::make_unique<TraceFollower>(folder_, history_of_each(folder_));
}

/// Aligns the clocks by what exists, before any of it is sent: the first times
/// would else be converted by the hosts' clocks alone.
void TraceFeed::align_history() {
  const auto history = make_follower();
  const auto names = history->find_files();
  do
    for (const auto& chunk : history->read(portion_to_align))
      clocks_.add(names[chunk.file], chunk.bytes);
  while (history->unread_bytes() > 0);
}

void TraceFeed::add_clocks(bool all_arrived, std::vector<FeedMessage>& found) {
  if (const auto changes = clocks_.changes(all_arrived); !changes.empty())
    found.push_back(text_message("clock", changes));
}

void TraceFeed::find_files(std::vector<FeedMessage>& found) {
  const bool first = names_.empty();
  for (const auto& name : follower_->find_files()) {
    names_.push_back(name);
    found.push_back(text_message("file", name));
  }
  if (first)
    add_clocks(true, found);
}

void TraceFeed::read(std::size_t max_bytes, std::vector<FeedMessage>& found) {
  const auto chunks = follower_->read(max_bytes);
  for (const auto& chunk : chunks)
    clocks_.add(names_[chunk.file], chunk.bytes);
  add_clocks(false, found);
  for (const auto& chunk : chunks) {
    FeedMessage message{true, std::string(sizeof chunk.file, '\0')};
    std::memcpy(message.bytes.data(), &chunk.file, sizeof chunk.file);
    message.bytes += chunk.bytes;
    found.push_back(std::move(message));
  }
}

std::uint64_t TraceFeed::unread_bytes() const {
  return follower_->unread_bytes();
}

} // namespace troupe::runtime
