#include "models/agents/session_record.hpp"

#include "config/base/error.hpp"
#include "models/agents/chat_messages.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <set>

namespace troupe::models {

namespace {

using nlohmann::ordered_json;

bool begins_with(const ordered_json& messages, const ordered_json& first) {
  return first.size() < messages.size()
         && std::equal(first.begin(), first.end(), messages.begin(),
                       is_same_message);
}

} // namespace

SessionRecord::SegmentId SessionRecord::give(std::optional<SegmentId> after,
                                             std::vector<std::int32_t> ids) {
  const auto same = std::ranges::find_if(
    segments_, [&](const Segment& segment) {
      return !segment.is_answer && segment.after == after && segment.ids == ids;
    });
  if (same != segments_.end())
    return static_cast<SegmentId>(same - segments_.begin());
  TROUPE_CHECK(!after || segments_.at(*after).is_answer,
               "the program goes on after an answer");
  segments_.push_back({.after = after, .ids = std::move(ids)});
  return segments_.size() - 1;
}

SessionRecord::SegmentId SessionRecord::say(SegmentId given,
                                            std::vector<std::int32_t> ids,
                                            std::vector<float> logprobs,
                                            bool truncated, SaidAs as) {
  TROUPE_CHECK(!segments_.at(given).is_answer, "the model answers the program");
  TROUPE_CHECK(ids.size() == logprobs.size(), "one log-probability per token");
  segments_.push_back({.after = given,
                       .ids = std::move(ids),
                       .logprobs = std::move(logprobs),
                       .is_answer = true,
                       .truncated = truncated,
                       .as = std::move(as)});
  return segments_.size() - 1;
}

/// Returns the last of the answers with the largest `size`; 0: not one of them.
template <class Size>
std::optional<SessionRecord::SegmentId>
SessionRecord::longest(Size size) const {
  std::optional<SegmentId> best;
  std::size_t most = 1;
  for (SegmentId i = 0; i < segments_.size(); ++i) {
    const std::size_t own = segments_[i].is_answer ? size(i) : 0;
    if (own < most)
      continue;
    most = own;
    best = i;
  }
  return best;
}

std::optional<SessionRecord::SegmentId>
SessionRecord::continued_by(const ordered_json& messages,
                            const ordered_json& tools) const {
  return longest([&](SegmentId i) -> std::size_t {
    const auto& as = segments_[i].as;
    return *as.tools == tools && begins_with(messages, *as.messages)
             ? as.messages->size()
             : 0;
  });
}

std::optional<SessionRecord::SegmentId>
SessionRecord::continued_by(const std::string& prompt) const {
  return longest([&](SegmentId i) -> std::size_t {
    const auto& text = segments_[i].as.text;
    return prompt.starts_with(text) ? text.size() : 0;
  });
}

std::optional<SessionRecord::SegmentId>
SessionRecord::continued_by(std::span<const std::int32_t> ids) const {
  return longest([&](SegmentId i) -> std::size_t {
    const auto own = ids_until(i);
    return own.size() <= ids.size()
               && std::equal(own.begin(), own.end(), ids.begin())
             ? own.size()
             : 0;
  });
}

std::size_t SessionRecord::num_answers() const {
  return static_cast<std::size_t>(
    std::ranges::count_if(segments_, &Segment::is_own));
}

std::uint32_t SessionRecord::answers_to(SegmentId given) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
    segments_, [&](const Segment& segment) { return segment.after == given; }));
}

std::vector<SessionRecord::SegmentId>
SessionRecord::path_to(SegmentId segment) const {
  std::vector<SegmentId> path;
  for (std::optional<SegmentId> at = segment; at; at = segments_.at(*at).after)
    path.push_back(*at);
  std::ranges::reverse(path);
  return path;
}

std::vector<std::int32_t> SessionRecord::ids_until(SegmentId segment) const {
  std::vector<std::int32_t> ids;
  for (const auto at : path_to(segment))
    ids.insert(ids.end(), segments_[at].ids.begin(), segments_[at].ids.end());
  return ids;
}

RecordedBranch SessionRecord::branch(SegmentId end) const {
  RecordedBranch branch;
  for (const auto at : path_to(end)) {
    const Segment& segment = segments_[at];
    const auto size = branch.ids.size() + segment.ids.size();
    branch.ids.insert(branch.ids.end(), segment.ids.begin(), segment.ids.end());
    branch.loss_mask.resize(size, segment.is_own() ? 1 : 0);
    if (segment.is_own())
      branch.logprobs.insert(branch.logprobs.end(), segment.logprobs.begin(),
                             segment.logprobs.end());
    branch.logprobs.resize(size);
    branch.truncated = segment.truncated;
  }
  return branch;
}

std::vector<SessionRecord::SegmentId> SessionRecord::ends() const {
  std::set<SegmentId> continued;
  for (const Segment& segment : segments_)
    if (segment.is_answer && segments_[*segment.after].after)
      continued.insert(*segments_[*segment.after].after);
  std::vector<SegmentId> ends;
  for (SegmentId i = 0; i < segments_.size(); ++i)
    if (segments_[i].is_answer && !continued.contains(i))
      ends.push_back(i);
  return ends;
}

std::optional<SessionRecord::SegmentId> SessionRecord::last_answer() const {
  const auto last = std::find_if(segments_.rbegin(), segments_.rend(),
                                 std::mem_fn(&Segment::is_own));
  if (last == segments_.rend())
    return std::nullopt;
  return static_cast<SegmentId>(segments_.rend() - last) - 1;
}

std::optional<RecordedBranch> SessionRecord::last_branch() const {
  const auto last = last_answer();
  if (!last)
    return std::nullopt;
  auto found = branch(*last);
  found.truncated = found.truncated || had_no_room_;
  return found;
}

std::size_t SessionRecord::answers_beside_last_branch() const {
  const auto last = last_answer();
  if (!last)
    return 0;
  const auto path = path_to(*last);
  const auto own = std::ranges::count_if(
    path, [&](SegmentId at) { return segments_[at].is_own(); });
  return num_answers() - static_cast<std::size_t>(own);
}

} // namespace troupe::models
