// The record of a session, token by token: a tree of segments, given by the
// program or said by the model. A segment that the model said is never
// tokenized again, so a branch holds the tokens that were drawn, with the
// log-probabilities that they were drawn with. Branches share the segments up
// to where they part.
#pragma once

#include "models/agents/held_json.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {

/// Who said an answer: the model that is trained, or another of the session,
/// whose tokens are given ones to it.
enum class SaidBy : std::uint8_t { own, other };

/// An answer as the program knows it: how a later request shows that it
/// continues it.
struct SaidAs {
  HeldJson messages; ///< chat: all up to and with the answer
  HeldJson tools;    ///< chat: those of the request
  std::string text;  ///< completion: prompt and answer
  SaidBy by = SaidBy::own;
};

/// One branch from its first token on.
struct RecordedBranch {
  std::vector<std::int32_t> ids;       ///< [L]
  std::vector<std::uint8_t> loss_mask; ///< [L] 1: the model said it
  std::vector<float> logprobs;         ///< [L] 0 where it did not
  bool truncated = false;              ///< the last answer was cut
};

class SessionRecord {
public:
  using SegmentId = std::size_t;

  /// Adds what the program gives after a segment, or at the start; returns the
  /// segment that is equal if there is one.
  SegmentId give(std::optional<SegmentId> after, std::vector<std::int32_t> ids);
  /// Adds an answer of the model.
  SegmentId say(SegmentId given, std::vector<std::int32_t> ids,
                std::vector<float> logprobs, bool truncated, SaidAs as);
  /// Notes that what the program gave found no room: the branch that the
  /// session ends with counts as truncated.
  void had_no_room() {
    had_no_room_ = true;
  }

  /// Returns the answer whose messages `messages` begin with, and go on after:
  /// the longest, and of equal ones the last. Nothing: none.
  std::optional<SegmentId>
  continued_by(const nlohmann::ordered_json& messages,
               const nlohmann::ordered_json& tools) const;
  /// Returns the answer with whose text `prompt` begins, likewise.
  std::optional<SegmentId> continued_by(const std::string& prompt) const;
  /// Returns the answer with whose branch `ids` begin, likewise.
  std::optional<SegmentId>
  continued_by(std::span<const std::int32_t> ids) const;

  /// Returns the answers of the model that is trained.
  std::size_t num_answers() const;
  /// Returns how often models have answered a segment.
  std::uint32_t answers_to(SegmentId given) const;
  const SaidAs& said_as(SegmentId segment) const {
    return segments_.at(segment).as;
  }
  bool truncated(SegmentId segment) const {
    return segments_.at(segment).truncated;
  }
  std::vector<std::int32_t> ids_until(SegmentId segment) const;
  RecordedBranch branch(SegmentId segment) const;
  /// Returns the answers that nothing continues: each ends a branch.
  std::vector<SegmentId> ends() const;
  /// Returns the branch of the last answer of the model that is trained;
  /// nothing: it said nothing.
  std::optional<RecordedBranch> last_branch() const;
  /// Returns its answers that are not in that branch.
  std::size_t answers_beside_last_branch() const;

private:
  struct Segment {
    std::optional<SegmentId> after;
    std::vector<std::int32_t> ids;
    std::vector<float> logprobs; ///< of answers
    bool is_answer = false;
    bool truncated = false;
    SaidAs as;

    bool is_own() const {
      return is_answer && as.by == SaidBy::own;
    }
  };

  std::vector<SegmentId> path_to(SegmentId segment) const;
  std::optional<SegmentId> last_answer() const;
  template <class Size>
  std::optional<SegmentId> longest(Size size) const;

  std::vector<Segment> segments_;
  bool had_no_room_ = false;
};

} // namespace troupe::models
