// Rules for the answers of a server to requests for tokens, whole responses or
// turns of one: tokens of this model, within the limits, ended by an end token
// or a limit, all of the call's weights. What our engine generates is so by
// construction; this is from another program.
#pragma once

#include "models/generate/sequences.hpp"
#include "models/servers/server_request.hpp"

#include <cstdint>
#include <string>

namespace troupe::models {

class AnswerRules {
public:
  /// Keeps references to all arguments.
  AnswerRules(const ModelShape& shape, const GenerateOptions& options,
              const std::string& version)
    : shape_(shape),
      options_(options),
      version_(version) {}

  /// Adds the answer to what `sequence` has, up to its limit of this turn.
  /// Throws FailureError: bad_input or numerics if it is no whole answer of
  /// this model, stale if other weights made any of it.
  void add(internal::Sequence& sequence, ServerAnswer answer) const;
  /// Returns the seed of the draws of a response: a server's noise is its own,
  /// but the same sample asks with the same seed however samples are dealt.
  std::uint64_t seed_of(const internal::Sequence& sequence) const;
  /// Returns the seed of a turn, another for each place in the conversation and
  /// for each answer to the same tokens.
  std::uint64_t seed_of_turn(const internal::Sequence& sequence) const;

private:
  bool is_end(std::int32_t token) const;
  void check_end(const internal::Sequence& sequence, const std::string& id,
                 const ServerAnswer& answer) const;
  void check_versions(const std::string& id, const ServerAnswer& answer) const;
  void check(const internal::Sequence& sequence, const std::string& id,
             const ServerAnswer& answer) const;

  const ModelShape& shape_;
  const GenerateOptions& options_;
  const std::string& version_;
};

} // namespace troupe::models
