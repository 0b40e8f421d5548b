// A leader of conversations without actors: requests turns, inserts a tool's
// tokens in between, and keeps the source of each token.
#pragma once

#include "models/generate/generate_options.hpp"
#include "models/generate/turns.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace troupe::testing {

using models::GenerateOptions;
using models::TurnEnd;
using models::TurnQueue;
using Ids = std::vector<std::int32_t>;

/// Returns a tool's tokens after turn `turn` of a sample: different for each.
inline Ids tool_ids(std::uint32_t sample, int turn) {
  Ids ids;
  for (std::uint32_t i = 0; i < 1 + (sample + turn) % 4; ++i)
    ids.push_back(
      static_cast<std::int32_t>(20 + (sample * 7 + turn * 3 + i) % 50));
  return ids;
}

struct Talk {
  Ids ids;
  std::vector<float> logprobs; ///< 0 for tokens that are not the model's
  std::vector<std::uint8_t> mask;
  int turns = 0;
  bool operator==(const Talk&) const = default;
};

/// Leads all conversations: requests the next turn when one has ended.
class Leader {
public:
  Leader(std::vector<Ids> prompts, int turns, std::uint32_t first = 0)
    : turns_(turns),
      left_(prompts.size()) {
    for (std::uint32_t i = 0; i < prompts.size(); ++i) {
      Talk& talk = talks_[first + i];
      talk.ids = prompts[i];
      talk.logprobs.assign(prompts[i].size(), 0.0F);
      talk.mask.assign(prompts[i].size(), 0);
    }
  }
  /// Begins in ascending order, or descending.
  void begin(bool backwards = false) {
    std::vector<std::uint32_t> order;
    for (const auto& [sample, talk] : talks_)
      order.push_back(sample);
    if (backwards)
      std::ranges::reverse(order);
    for (const auto sample : order)
      ask(sample);
  }
  TurnQueue& queue() {
    return queue_;
  }
  const std::map<std::uint32_t, Talk>& talks() const {
    return talks_;
  }
  std::size_t tokens() const {
    std::size_t sum = 0;
    for (const auto& [sample, talk] : talks_)
      sum += talk.ids.size();
    return sum;
  }
  std::int64_t max_tokens = 5;
  std::uint32_t speakers = 1; ///< models that take turns; mask 1 + speaker

private:
  std::uint32_t speaker_of(std::uint32_t sample) const {
    return (sample + static_cast<std::uint32_t>(talks_.at(sample).turns))
           % speakers;
  }
  void ask(std::uint32_t sample) {
    Talk& talk = talks_.at(sample);
    queue_.ask({.sample = SampleId{sample},
                .ids = talk.ids,
                .max_new_tokens = max_tokens,
                .speaker = speaker_of(sample)},
               [this, sample](std::variant<TurnEnd, Failure> end) {
                 heard(sample, std::get<TurnEnd>(end));
               });
  }
  void heard(std::uint32_t sample, const TurnEnd& end) {
    Talk& talk = talks_.at(sample);
    add(talk, end.ids, end.logprobs,
        static_cast<std::uint8_t>(1 + speaker_of(sample)));
    if (++talk.turns < turns_ && !end.ids.empty()) {
      const Ids tool = tool_ids(sample, talk.turns);
      add(talk, tool, std::vector<float>(tool.size()), 0);
      return ask(sample);
    }
    if (--left_ == 0)
      queue_.close();
  }
  static void add(Talk& talk, const Ids& ids,
                  const std::vector<float>& logprobs, std::uint8_t mask) {
    talk.ids.insert(talk.ids.end(), ids.begin(), ids.end());
    talk.logprobs.insert(talk.logprobs.end(), logprobs.begin(), logprobs.end());
    talk.mask.insert(talk.mask.end(), ids.size(), mask);
  }

  int turns_;
  std::size_t left_;
  std::map<std::uint32_t, Talk> talks_;
  TurnQueue queue_;
};

inline std::vector<Ids> mixed_prompts() {
  return {{1, 2, 3}, {4},     {5, 6, 7, 8, 9, 10, 11, 12, 13},
          {14, 15},  {16, 1}, {2, 2, 2, 2, 2}};
}

inline GenerateOptions talking_options() {
  GenerateOptions options;
  options.max_new_tokens = 40;
  options.stop_ids = {7};
  options.seed = 3;
  return options;
}

} // namespace troupe::testing
