#include "models/servers/served_turns.hpp"

#include "config/base/error.hpp"

#include <utility>

namespace troupe::models {

ServedTurns::ServedTurns(const ModelShape& shape, const ResponseBatch& prompts,
                         const GenerateOptions& options,
                         const std::string& version, TurnQueue& turns)
  : shape_(shape),
    rules_(shape, options, version),
    turns_(turns),
    sequences_(internal::make_sequences({&prompts, 1}, shape, options)) {
  for (std::size_t i = 0; i < sequences_.size(); ++i)
    index_[sequences_[i].sample] = i;
}

net::Coming<ServerRequest> ServedTurns::requests() {
  std::vector<std::size_t> owed;
  for (const auto& asked : std::exchange(asked_, {}))
    if (!asked.answered)
      owed.push_back(asked.sequence);
  waiting_.insert(waiting_.begin(), owed.begin(), owed.end());
  return {
    .take = [this] { return take_requests(); },
    .listen
    = [this](std::function<void()> wake) { turns_.listen(std::move(wake)); }};
}

net::Coming<ServerRequest>::Intake ServedTurns::take_requests() {
  auto [turns, closed] = turns_.take(std::chrono::milliseconds{0});
  for (Turn& turn : turns)
    begin(std::move(turn));
  net::Coming<ServerRequest>::Intake intake{.requests = {}, .closed = closed};
  for (const auto i : std::exchange(waiting_, {})) {
    intake.requests.push_back(request_of(sequences_[i]));
    asked_.push_back({.sequence = i});
  }
  return intake;
}

void ServedTurns::begin(Turn turn) {
  const auto found = index_.find(turn.sample);
  if (found == index_.end())
    internal::generation_failed(Errc::bad_input,
                                "sample " + to_string(turn.sample)
                                  + " is not of this generation");
  auto& sequence = sequences_[found->second];
  internal::begin_turn(sequence, std::move(turn), shape_.vocab_size);
  if (sequence.finished()) // no room for a token
    return turns_.end(sequence.sample, internal::turn_end(sequence));
  waiting_.push_back(found->second);
}

ServerRequest
ServedTurns::request_of(const internal::Sequence& sequence) const {
  return {.id
          = to_string(sequence.sample) + "-" + std::to_string(sequence.given),
          .prompt_ids = sequence.ids,
          .max_new_tokens = sequence.limits.turn - sequence.size(),
          .num_begun = sequence.given - sequence.num_prompt,
          .seed = rules_.seed_of_turn(sequence)};
}

void ServedTurns::take(std::size_t i, ServerAnswer answer) {
  auto& sequence = sequences_[asked_.at(i).sequence];
  rules_.add(sequence, std::move(answer));
  asked_[i].answered = true;
  turns_.end(sequence.sample, internal::turn_end(sequence));
}

} // namespace troupe::models
