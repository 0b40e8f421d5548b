#include "models/generate/turn_feed.hpp"

#include "config/base/error.hpp"
#include "net/collectives/channel.hpp"
#include "net/collectives/collectives.hpp"

namespace troupe::models::internal {

namespace {

/// Longest wait of an idle generator before it checks its stop flag, and lets
/// the devices of later stages do so.
constexpr std::chrono::milliseconds turn_wait{50};

using Words = std::vector<std::int32_t>;

/// Encodes an intake: closed, then sample, max_new_tokens, start, draw,
/// speaker, L, ids [L] of each turn.
Words words_of(const TurnQueue::Intake& intake) {
  Words words{intake.closed ? 1 : 0};
  for (const Turn& turn : intake.turns) {
    words.push_back(static_cast<std::int32_t>(turn.sample.value));
    words.push_back(static_cast<std::int32_t>(turn.max_new_tokens));
    words.push_back(static_cast<std::int32_t>(turn.start));
    words.push_back(static_cast<std::int32_t>(turn.draw));
    words.push_back(static_cast<std::int32_t>(turn.speaker));
    words.push_back(static_cast<std::int32_t>(turn.ids.size()));
    words.insert(words.end(), turn.ids.begin(), turn.ids.end());
  }
  return words;
}

TurnQueue::Intake intake_of(const Words& words) {
  TurnQueue::Intake intake{.turns = {}, .closed = words.front() != 0};
  for (auto word = words.begin() + 1; word != words.end();) {
    Turn& turn = intake.turns.emplace_back();
    turn.sample = SampleId{static_cast<std::uint32_t>(*word++)};
    turn.max_new_tokens = *word++;
    turn.start = static_cast<TurnStart>(*word++);
    turn.draw = static_cast<std::uint32_t>(*word++);
    turn.speaker = static_cast<std::uint32_t>(*word++);
    const std::ptrdiff_t count = *word++;
    turn.ids.assign(word, word + count);
    word += count;
  }
  return intake;
}

} // namespace

TurnFeed::TurnFeed(TurnQueue* queue, const Groups& groups)
  : queue_(queue),
    groups_(&groups),
    open_(true) {
  TROUPE_CHECK((queue_ != nullptr) == is_first(),
               "the first device of a copy has the queue of its turns");
}

bool TurnFeed::is_first() const {
  return groups_->first_stage()
         && (groups_->tp == nullptr || groups_->tp->rank() == 0);
}

std::vector<Turn> TurnFeed::take(bool idle) {
  Words words;
  if (is_first())
    words = words_of(queue_->take(idle ? turn_wait : turn_wait * 0));
  share(words);
  auto intake = intake_of(words);
  open_ = !intake.closed;
  return std::move(intake.turns);
}

void TurnFeed::share(Words& words) const {
  const auto tell = [&](auto pass) {
    auto size = static_cast<std::int64_t>(words.size());
    pass(&size, sizeof size);
    words.resize(static_cast<std::size_t>(size));
    pass(words.data(), words.size() * sizeof words.front());
  };
  if (!groups_->first_stage())
    tell([&](void* data, std::size_t bytes) {
      groups_->previous->receive(data, bytes, "turns");
    });
  else if (groups_->tp != nullptr)
    tell([&](void* data, std::size_t bytes) {
      groups_->tp->broadcast(data, bytes, DType::u8, 0, "turns");
    });
  if (!groups_->last_stage())
    tell([&](void* data, std::size_t bytes) {
      groups_->next->send(data, bytes, "turns");
    });
}

} // namespace troupe::models::internal
