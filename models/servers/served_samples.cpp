#include "models/servers/served_samples.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::models {

namespace {

/// Returns the seed of a sample's draws: a server's noise is its own, but the
/// same sample asks with the same seed however samples are dealt.
std::uint64_t request_seed(const GenerateOptions& options,
                           const internal::Sequence& sequence) {
  std::uint64_t mixed = options.seed;
  for (const std::uint64_t part : {std::uint64_t{sequence.noise.step.value},
                                   std::uint64_t{sequence.sample.value}}) {
    mixed = (mixed ^ part) * 0x9E37'79B9'7F4A'7C15; // 2^64 / golden ratio
    mixed ^= mixed >> 32;
  }
  return mixed;
}

[[noreturn]] void answer_is(Errc code, const std::string& id,
                            const std::string& what) {
  throw FailureError({.code = code,
                      .who = "server that generates",
                      .what = "its answer to " + id + " " + what,
                      .cause = ""});
}

} // namespace

ServedSamples::ServedSamples(const ModelShape& shape,
                             std::span<const ResponseBatch> batches,
                             const GenerateOptions& options,
                             const std::string& version,
                             const GenerateEvents& events)
  : shape_(shape),
    options_(options),
    version_(version),
    events_(events),
    sequences_(internal::make_sequences(batches, shape, options)),
    is_open_(sequences_.size(), true) {
  for (const auto& batch : batches) {
    const auto first = batch_of_.size();
    const auto count = batch.rows->num_samples();
    batch_of_.resize(first + count, batches_.size());
    batches_.push_back({first, first + count, count});
  }
  for (std::size_t i = 0; i < batches_.size(); ++i)
    if (batches_[i].num_open == 0)
      end_batch(i);
  for (std::size_t i = 0; i < sequences_.size(); ++i)
    if (sequences_[i].finished()) // its prompt fills the context
      end_sample(i);
}

std::vector<ServerRequest> ServedSamples::open_requests() const {
  std::vector<ServerRequest> requests;
  for (std::size_t i = 0; i < sequences_.size(); ++i)
    if (is_open_[i])
      requests.push_back(
        {.id = std::to_string(i),
         .prompt_ids = sequences_[i].ids,
         .max_new_tokens = sequences_[i].limits.all - sequences_[i].num_prompt,
         .seed = request_seed(options_, sequences_[i])});
  return requests;
}

bool ServedSamples::is_end(std::int32_t token) const {
  return !options_.ignore_eos
         && std::ranges::count(options_.stop_ids, token) > 0;
}

/// An end token is the last of a response that it ended, and is nowhere else;
/// one that a limit ended has all the tokens there is room for.
void ServedSamples::check_end(const internal::Sequence& sequence,
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
  const auto room = sequence.limits.all - sequence.size();
  if (!has_end && std::ssize(answer.ids) < room)
    answer_is(Errc::bad_input, id,
              "ended after " + std::to_string(answer.ids.size())
                + " tokens, without an end token and before the limit of "
                + std::to_string(room));
}

/// Each token is of the call's version (I4).
void ServedSamples::check_versions(const std::string& id,
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

void ServedSamples::check(const internal::Sequence& sequence,
                          const std::string& id,
                          const ServerAnswer& answer) const {
  const auto room = sequence.limits.all - sequence.size();
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

void ServedSamples::take(const ServerRequest& request, ServerAnswer answer) {
  const auto i = std::stoul(request.id);
  auto& sequence = sequences_.at(i);
  const auto id = "sample " + to_string(sequence.sample);
  check(sequence, id, answer);
  sequence.ids.insert(sequence.ids.end(), answer.ids.begin(), answer.ids.end());
  auto& logprobs = sequence.record.logprobs;
  logprobs.insert(logprobs.end(), answer.logprobs.begin(),
                  answer.logprobs.end());
  // at the limit, SGLang says that this ended a response, not the end token
  sequence.stopped = is_end(answer.ids.back());
  end_sample(i);
}

void ServedSamples::end_sample(std::size_t i) {
  const auto& sequence = sequences_[i];
  is_open_[i] = false;
  const auto batch = batch_of_[i];
  if (events_.on_sample)
    events_.on_sample({.sample = sequence.sample,
                       .batch = batch,
                       .sequence_ids = sequence.ids,
                       .logprobs = sequence.record.logprobs,
                       .num_prompt_tokens = sequence.num_prompt,
                       .truncated = !sequence.stopped});
  if (--batches_[batch].num_open == 0)
    end_batch(batch);
}

void ServedSamples::end_batch(std::size_t batch) {
  const auto& [first, last, open] = batches_[batch];
  if (events_.on_batch)
    events_.on_batch(
      batch, internal::sequence_rows(
               std::span(sequences_).subspan(first, last - first), options_));
}

} // namespace troupe::models
