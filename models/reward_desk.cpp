#include "models/reward_desk.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace troupe::models {

bool RewardDesk::put(Batch batch) {
  const std::lock_guard lock(mutex_);
  come_.push_back(std::move(batch));
  more_.ring();
  return !std::exchange(awaited_, true);
}

std::optional<std::pair<std::string, StepId>> RewardDesk::next() const {
  const std::lock_guard lock(mutex_);
  if (come_.empty())
    return std::nullopt;
  return std::pair{come_.front().call, come_.front().step};
}

std::vector<RewardDesk::Batch> RewardDesk::come() {
  const std::lock_guard lock(mutex_);
  return std::exchange(come_, {});
}

void RewardDesk::serve(const std::atomic<bool>* stop,
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
  round.on_stray
    = [this](std::string stray) { strays_.push_back(std::move(stray)); };
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

std::vector<RewardItem> RewardDesk::take() {
  tell_scored();
  std::vector<RewardItem> fresh;
  for (auto& batch : come())
    take_batch(batch, fresh);
  return fresh;
}

void RewardDesk::take_batch(Batch& batch, std::vector<RewardItem>& fresh) {
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
      held = std::make_shared<Answer>(Answer{items[i], std::nullopt});
      numbered_.push_back(held);
      fresh.push_back(std::move(items[i]));
    }
    if (!asks)
      continue;
    asked_.back().answers.push_back(std::move(held));
    held_.erase(key);
  }
  if (asks)
    drop_before(batch.call, batch.step);
}

/// Steps are asked about in their order.
void RewardDesk::drop_before(const std::string& call, StepId step) {
  std::erase_if(held_, [&](const auto& entry) {
    return entry.first.call == call && entry.first.step < step;
  });
}

void RewardDesk::tell_scored() {
  std::erase_if(asked_, [this](const Asked& asked) {
    if (!std::ranges::all_of(asked.answers, [](const auto& answer) {
          return answer->score.has_value();
        }))
      return false;
    ScoredItems scored;
    for (const auto& answer : asked.answers) {
      scored.items.push_back(answer->item);
      scored.answers.scores.push_back(*answer->score);
    }
    scored.answers.strays = std::exchange(strays_, {});
    asked.on_scored([&] { return std::move(scored); });
    return true;
  });
}

void RewardDesk::fail(const std::exception_ptr& failure) {
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
