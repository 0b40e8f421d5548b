#include "models/servers/answer_rules.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace troupe::models {

namespace {

std::uint64_t mixed_seed(std::uint64_t seed,
                         std::initializer_list<std::uint64_t> parts) {
  for (const auto part : parts) {
    seed = (seed ^ part) * 0x9E37'79B9'7F4A'7C15; // 2^64 / golden ratio
    seed ^= seed >> 32;
  }
  return seed;
}

[[noreturn]] void answer_is(Errc code, const std::string& id,
                            const std::string& what) {
  throw FailureError({.code = code,
                      .who = "server that generates",
                      .what = "its answer to " + id + " " + what,
                      .cause = ""});
}

} // namespace

std::uint64_t AnswerRules::seed_of(const internal::Sequence& sequence) const {
  return mixed_seed(options_.seed,
                    {sequence.noise.step.value, sequence.sample.value});
}

std::uint64_t
AnswerRules::seed_of_turn(const internal::Sequence& sequence) const {
  return mixed_seed(
    seed_of(sequence),
    {static_cast<std::uint64_t>(sequence.given), sequence.noise.draw});
}

bool AnswerRules::is_end(std::int32_t token) const {
  return !options_.ignore_eos
         && std::ranges::count(options_.stop_ids, token) > 0;
}

/// An end token is the last of a response that it ended, and is nowhere else;
/// one that a limit ended has all the tokens there is room for.
void AnswerRules::check_end(const internal::Sequence& sequence,
                            const std::string& id,
                            const ServerAnswer& answer) const {
  const auto first = std::ranges::find_if(
    answer.ids, [this](std::int32_t token) { return is_end(token); });
  const bool has_end = first != answer.ids.end();
  if (has_end && first + 1 != answer.ids.end())
    answer_is(Errc::bad_input, id,
              "goes on after the end token " + std::to_string(*first));
  if (answer.stopped && !has_end)
    answer_is(Errc::bad_input, id, "stopped without an end token");
  const auto room = sequence.limits.turn - sequence.size();
  if (!has_end && std::ssize(answer.ids) < room)
    answer_is(Errc::bad_input, id,
              "ended after " + std::to_string(answer.ids.size())
                + " tokens, without an end token and before the limit of "
                + std::to_string(room));
}

/// Each token is of the call's version (I4).
void AnswerRules::check_versions(const std::string& id,
                                 const ServerAnswer& answer) const {
  std::size_t known = 0; // tokens whose version is
  for (const auto& span : answer.versions) {
    if (span.version != version_)
      answer_is(Errc::stale, id,
                "has tokens of weights '" + span.version
                  + "', the call is for '" + version_ + "'");
    if (span.begin == known)
      known = std::max(known, span.end);
  }
  if (known != answer.ids.size())
    answer_is(Errc::stale, id,
              "says the weights of " + std::to_string(known) + " of its "
                + std::to_string(answer.ids.size()) + " tokens");
}

void AnswerRules::check(const internal::Sequence& sequence,
                        const std::string& id,
                        const ServerAnswer& answer) const {
  const auto room = sequence.limits.turn - sequence.size();
  if (answer.ids.empty() || std::ssize(answer.ids) > room)
    answer_is(Errc::bad_input, id,
              "has " + std::to_string(answer.ids.size()) + " tokens, not 1 to "
                + std::to_string(room));
  for (const auto token : answer.ids)
    if (token < 0 || token >= shape_.vocab_size)
      answer_is(Errc::bad_input, id,
                "has token " + std::to_string(token)
                  + ", which is not in the vocabulary");
  if (!std::ranges::all_of(answer.logprobs,
                           [](float p) { return std::isfinite(p); }))
    answer_is(Errc::numerics, id, "has log-probabilities that are not finite");
  check_end(sequence, id, answer);
  check_versions(id, answer);
}

void AnswerRules::add(internal::Sequence& sequence, ServerAnswer answer) const {
  check(sequence, "sample " + to_string(sequence.sample), answer);
  sequence.ids.insert(sequence.ids.end(), answer.ids.begin(), answer.ids.end());
  auto& logprobs = sequence.record.logprobs;
  logprobs.insert(logprobs.end(), answer.logprobs.begin(),
                  answer.logprobs.end());
  // at the limit, SGLang says that this ended a response, not the end token
  sequence.stopped = is_end(answer.ids.back());
}

} // namespace troupe::models
