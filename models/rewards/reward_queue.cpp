#include "models/rewards/reward_queue.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace troupe::models {

bool RewardQueue::put(Batch batch) {
  const std::lock_guard lock(mutex_);
  come_.push_back(std::move(batch));
  more_.ring();
  return !std::exchange(awaited_, true);
}

std::optional<std::pair<std::string, StepId>> RewardQueue::next() const {
  const std::lock_guard lock(mutex_);
  if (come_.empty())
    return std::nullopt;
  return std::pair{come_.front().call, come_.front().step};
}

std::vector<RewardQueue::Batch> RewardQueue::come() {
  const std::lock_guard lock(mutex_);
  return std::exchange(come_, {});
}

void RewardQueue::serve(const std::atomic<bool>* stop,
                        const std::function<void()>& progress) {
  {
    const std::lock_guard lock(mutex_);
    awaited_ = false;
  }
  RewardRound round;
  round.take = [this] { return take(); };
  round.on_score = [&](std::size_t item, RewardScore score) {
    numbered_[item]->score = std::move(score);
    progress();
  };
  round.on_unmatched = [this](std::string unmatched) {
    unmatched_.push_back(std::move(unmatched));
  };
  round.more = &more_;
  round.stop = stop;
  try {
    if (!rewarder_)
      rewarder_ = make_();
    rewarder_->score(round);
    tell_scored();
  } catch (...) {
    fail(std::current_exception());
  }
  numbered_.clear();
}

std::vector<RewardItem> RewardQueue::take() {
  tell_scored();
  std::vector<RewardItem> fresh;
  for (auto& batch : come())
    take_batch(batch, fresh);
  return fresh;
}

void RewardQueue::take_batch(Batch& batch, std::vector<RewardItem>& fresh) {
  const bool asks = batch.on_scored != nullptr;
  if (asks)
    asked_.push_back({{}, std::move(batch.on_scored)});
  if (failure_ && asks)
    return fail(std::exchange(failure_, nullptr));
  if (failure_)
    return;
  auto items = read_(batch);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Key key{batch.call, batch.step, batch.rows.samples[i]};
    auto& held = held_[key];
    if (!held || !held->item.is_like(items[i])) {
      held = std::make_shared<Reply>(Reply{items[i], std::nullopt});
      numbered_.push_back(held);
      fresh.push_back(std::move(items[i]));
    }
    if (!asks)
      continue;
    asked_.back().replies.push_back(std::move(held));
    held_.erase(key);
  }
  if (asks)
    drop_before(batch.call, batch.step);
}

/// steps are requested in order
void RewardQueue::drop_before(const std::string& call, StepId step) {
  std::erase_if(held_, [&](const auto& entry) {
    return entry.first.call == call && entry.first.step < step;
  });
}

void RewardQueue::tell_scored() {
  std::erase_if(asked_, [this](const Asked& asked) {
    if (!std::ranges::all_of(asked.replies, [](const auto& reply) {
          return reply->score.has_value();
        }))
      return false;
    ScoredItems scored;
    for (const auto& reply : asked.replies) {
      scored.items.push_back(reply->item);
      scored.replies.scores.push_back(*reply->score);
    }
    scored.replies.unmatched = std::exchange(unmatched_, {});
    asked.on_scored([&] { return std::move(scored); });
    return true;
  });
}

void RewardQueue::fail(const std::exception_ptr& failure) {
  for (auto& batch : come())
    if (batch.on_scored)
      asked_.push_back({{}, std::move(batch.on_scored)});
  held_.clear();
  if (asked_.empty())
    failure_ = failure;
  for (const auto& asked : std::exchange(asked_, {}))
    asked.on_scored([&]() -> ScoredItems { std::rethrow_exception(failure); });
}

} // namespace troupe::models
