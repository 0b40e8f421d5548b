// The record of a session, token by token: a tree of pieces, given by the
// program or said by the model. A piece that the model said is never tokenized
// again, so a branch holds the tokens that were drawn, with the
// log-probabilities that they were drawn with. Branches share the pieces up to
// where they part.
#pragma once

#include "models/agents/held_json.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {

/// An answer as the program knows it: how a later request shows that it
/// continues it.
struct SaidAs {
  HeldJson messages; ///< chat: all up to and with the answer
  HeldJson tools;    ///< chat: those of the request
  std::string text;  ///< completion: prompt and answer
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
  using PieceId = std::size_t;

  /// Adds what the program gives after a piece, or at the start; returns the
  /// piece that is equal if there is one.
  PieceId give(std::optional<PieceId> after, std::vector<std::int32_t> ids);
  /// Adds an answer of the model.
  PieceId say(PieceId given, std::vector<std::int32_t> ids,
              std::vector<float> logprobs, bool truncated, SaidAs as);
  /// Notes that what the program gave found no room: the branch that the
  /// session ends with counts as truncated.
  void had_no_room() {
    had_no_room_ = true;
  }

  /// Returns the answer whose messages `messages` begin with, and go on after:
  /// the longest, and of equal ones the last. Nothing: none.
  std::optional<PieceId>
  continued_by(const nlohmann::ordered_json& messages,
               const nlohmann::ordered_json& tools) const;
  /// Returns the answer with whose text `prompt` begins, likewise.
  std::optional<PieceId> continued_by(const std::string& prompt) const;
  /// Returns the answer with whose branch `ids` begin, likewise.
  std::optional<PieceId> continued_by(std::span<const std::int32_t> ids) const;

  std::size_t num_answers() const;
  /// Returns how often the model has answered a piece.
  std::uint32_t answers_to(PieceId given) const;
  const SaidAs& said_as(PieceId piece) const {
    return pieces_.at(piece).as;
  }
  bool truncated(PieceId piece) const {
    return pieces_.at(piece).truncated;
  }
  std::vector<std::int32_t> ids_until(PieceId piece) const;
  RecordedBranch branch(PieceId piece) const;
  /// Returns the answers that nothing continues: each ends a branch.
  std::vector<PieceId> ends() const;
  /// Returns the branch of the last answer; nothing: the model said nothing.
  std::optional<RecordedBranch> last_branch() const;
  /// Returns the answers that are not in that branch.
  std::size_t answers_beside_last_branch() const;

private:
  struct Piece {
    std::optional<PieceId> after;
    std::vector<std::int32_t> ids;
    std::vector<float> logprobs; ///< of answers
    bool is_answer = false;
    bool truncated = false;
    SaidAs as;
  };

  std::vector<PieceId> path_to(PieceId piece) const;
  std::optional<PieceId> last_answer() const;
  template <class Size>
  std::optional<PieceId> longest(Size size) const;

  std::vector<Piece> pieces_;
  bool had_no_room_ = false;
};

} // namespace troupe::models
