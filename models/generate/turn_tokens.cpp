#include "models/generate/turn_tokens.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

/// Limit of tokens of the sequence; stored in the sample.
constexpr Key<std::int32_t> most_tokens_key{".most_tokens"};

/// Adds tokens at the end of the sequence; without log-probabilities they are
/// not the model's.
void add_tokens(Sample& sample, std::span<const std::int32_t> ids,
                std::span<const float> logprobs) {
  const auto join = [&](auto key, auto more) {
    const auto old = sample[key];
    std::vector values(old.begin(), old.end());
    values.insert(values.end(), more.begin(), more.end());
    sample.set(key, values);
  };
  const bool own = !logprobs.empty();
  join(keys::sequence_ids, ids);
  join(keys::loss_mask,
       std::vector<std::uint8_t>(ids.size(), own ? std::uint8_t{1} : 0));
  join(keys::logprobs, own
                         ? std::vector<float>(logprobs.begin(), logprobs.end())
                         : std::vector<float>(ids.size()));
}

std::vector<std::int32_t> own_ids(const Sample& sample) {
  const auto ids = sample[keys::sequence_ids];
  const auto mask = sample[keys::loss_mask];
  std::vector<std::int32_t> own;
  for (std::size_t t = 0; t < ids.size(); ++t)
    if (mask[t] != 0)
      own.push_back(ids[t]);
  return own;
}

} // namespace

void begin_conversation(Sample& sample, std::span<const std::int32_t> prompt,
                        std::int64_t most_tokens) {
  sample.set(keys::sequence_ids, prompt);
  sample.set(keys::loss_mask, std::vector<std::uint8_t>(prompt.size()));
  sample.set(keys::logprobs, std::vector<float>(prompt.size()));
  sample.set(keys::truncated, 0);
  sample.set(most_tokens_key, static_cast<std::int32_t>(most_tokens));
}

void take_appended(Sample& sample, const Tokenizer& tokenizer) {
  if (!sample.has(keys::appended) || sample[keys::appended].empty())
    return;
  auto ids = tokenizer.encode(sample[keys::appended], /*special=*/false);
  sample.set(keys::appended, "");
  const auto most = static_cast<std::size_t>(sample[most_tokens_key]);
  const auto room = most - std::min(most, sample[keys::sequence_ids].size());
  if (ids.size() > room) {
    ids.resize(room);
    sample.set(keys::truncated, 1);
  }
  add_tokens(sample, ids, {});
}

Turn next_turn(const Sample& sample, std::uint32_t max_tokens,
               std::uint32_t speaker) {
  const auto ids = sample[keys::sequence_ids];
  return {.sample = SampleId{sample.id()},
          .ids = {ids.begin(), ids.end()},
          .max_new_tokens = max_tokens,
          .speaker = speaker};
}

void take_turn(Sample& sample, const TurnEnd& turn, const Tokenizer& tokenizer,
               std::uint32_t speaker) {
  const std::span<const float> logprobs = turn.logprobs;
  if (!turn.ids.empty())
    add_tokens(sample, turn.ids, speaker == 0 ? logprobs : logprobs.first(0));
  sample.set(keys::truncated, turn.truncated ? 1 : 0);
  sample.set(keys::turn, tokenizer.decode(turn.ids));
  sample.set(keys::response, tokenizer.decode(own_ids(sample)));
}

} // namespace troupe::models
