#include "models/agents/session_record.hpp"

#include "config/base/error.hpp"
#include "models/agents/chat_messages.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
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

SessionRecord::PieceId SessionRecord::give(std::optional<PieceId> after,
                                           std::vector<std::int32_t> ids) {
  const auto same = std::ranges::find_if(pieces_, [&](const Piece& piece) {
    return !piece.is_answer && piece.after == after && piece.ids == ids;
  });
  if (same != pieces_.end())
    return static_cast<PieceId>(same - pieces_.begin());
  TROUPE_CHECK(!after || pieces_.at(*after).is_answer,
               "the program goes on after an answer");
  pieces_.push_back({.after = after, .ids = std::move(ids)});
  return pieces_.size() - 1;
}

SessionRecord::PieceId SessionRecord::say(PieceId given,
                                          std::vector<std::int32_t> ids,
                                          std::vector<float> logprobs,
                                          bool truncated, SaidAs as) {
  TROUPE_CHECK(!pieces_.at(given).is_answer, "the model answers the program");
  TROUPE_CHECK(ids.size() == logprobs.size(), "one log-probability per token");
  pieces_.push_back({.after = given,
                     .ids = std::move(ids),
                     .logprobs = std::move(logprobs),
                     .is_answer = true,
                     .truncated = truncated,
                     .as = std::move(as)});
  return pieces_.size() - 1;
}

/// Returns the last of the answers with the largest `size`; 0: not one of them.
template <class Size>
std::optional<SessionRecord::PieceId> SessionRecord::longest(Size size) const {
  std::optional<PieceId> best;
  std::size_t most = 1;
  for (PieceId i = 0; i < pieces_.size(); ++i) {
    const std::size_t own = pieces_[i].is_answer ? size(i) : 0;
    if (own < most)
      continue;
    most = own;
    best = i;
  }
  return best;
}

std::optional<SessionRecord::PieceId>
SessionRecord::continued_by(const ordered_json& messages,
                            const ordered_json& tools) const {
  return longest([&](PieceId i) -> std::size_t {
    const auto& as = pieces_[i].as;
    return *as.tools == tools && begins_with(messages, *as.messages)
             ? as.messages->size()
             : 0;
  });
}

std::optional<SessionRecord::PieceId>
SessionRecord::continued_by(const std::string& prompt) const {
  return longest([&](PieceId i) -> std::size_t {
    const auto& text = pieces_[i].as.text;
    return prompt.starts_with(text) ? text.size() : 0;
  });
}

std::optional<SessionRecord::PieceId>
SessionRecord::continued_by(std::span<const std::int32_t> ids) const {
  return longest([&](PieceId i) -> std::size_t {
    const auto own = ids_until(i);
    return own.size() <= ids.size()
               && std::equal(own.begin(), own.end(), ids.begin())
             ? own.size()
             : 0;
  });
}

std::size_t SessionRecord::num_answers() const {
  return static_cast<std::size_t>(
    std::ranges::count(pieces_, true, &Piece::is_answer));
}

std::uint32_t SessionRecord::answers_to(PieceId given) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
    pieces_, [&](const Piece& piece) { return piece.after == given; }));
}

std::vector<SessionRecord::PieceId>
SessionRecord::path_to(PieceId piece) const {
  std::vector<PieceId> path;
  for (std::optional<PieceId> at = piece; at; at = pieces_.at(*at).after)
    path.push_back(*at);
  std::ranges::reverse(path);
  return path;
}

std::vector<std::int32_t> SessionRecord::ids_until(PieceId piece) const {
  std::vector<std::int32_t> ids;
  for (const auto at : path_to(piece))
    ids.insert(ids.end(), pieces_[at].ids.begin(), pieces_[at].ids.end());
  return ids;
}

RecordedBranch SessionRecord::branch(PieceId end) const {
  RecordedBranch branch;
  for (const auto at : path_to(end)) {
    const Piece& piece = pieces_[at];
    const auto size = branch.ids.size() + piece.ids.size();
    branch.ids.insert(branch.ids.end(), piece.ids.begin(), piece.ids.end());
    branch.loss_mask.resize(size, piece.is_answer ? 1 : 0);
    branch.logprobs.insert(branch.logprobs.end(), piece.logprobs.begin(),
                           piece.logprobs.end());
    branch.logprobs.resize(size);
    branch.truncated = piece.truncated;
  }
  return branch;
}

std::vector<SessionRecord::PieceId> SessionRecord::ends() const {
  std::set<PieceId> continued;
  for (const Piece& piece : pieces_)
    if (piece.is_answer && pieces_[*piece.after].after)
      continued.insert(*pieces_[*piece.after].after);
  std::vector<PieceId> ends;
  for (PieceId i = 0; i < pieces_.size(); ++i)
    if (pieces_[i].is_answer && !continued.contains(i))
      ends.push_back(i);
  return ends;
}

std::optional<SessionRecord::PieceId> SessionRecord::last_answer() const {
  const auto last = std::ranges::find(pieces_.rbegin(), pieces_.rend(), true,
                                      &Piece::is_answer);
  if (last == pieces_.rend())
    return std::nullopt;
  return static_cast<PieceId>(pieces_.rend() - last) - 1;
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
    path, [&](PieceId at) { return pieces_[at].is_answer; });
  return num_answers() - static_cast<std::size_t>(own);
}

} // namespace troupe::models
