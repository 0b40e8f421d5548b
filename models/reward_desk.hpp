// Where answers meet their scores. Whoever makes answers offers each as it
// finishes, so that it is scored while others are still being made; the call
// that reads them asks for all its answers' scores, whether they were offered
// or not. Only time depends on offers: an answer that is not the one that was
// offered is scored anew, and what nobody asked for goes with its step.
#pragma once

#include "config/ids.hpp"
#include "models/reward.hpp"
#include "net/rows.hpp"
#include "net/wake_event.hpp"

#include <compare>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe::models {

/// The items of a call's answers, with what was said about each.
struct ScoredItems {
  std::vector<RewardItem> items;
  RewardAnswers answers;
};
/// Gives them, or throws what kept them from being scored.
using GetScored = std::function<ScoredItems()>;

class RewardDesk {
public:
  /// Answers of a call in a step.
  struct Batch {
    std::string call;
    StepId step;
    net::Rows rows;
    /// Asks for their scores, called on the thread that scores; empty: they
    /// are offered.
    std::function<void(const GetScored&)> on_scored = {};
  };
  /// Both are called on the thread that scores: the items of a batch, one a
  /// sample, and, once, who scores them.
  using ReadItems = std::function<std::vector<RewardItem>(const Batch&)>;
  using MakeRewarder = std::function<std::unique_ptr<Rewarder>()>;

  RewardDesk(ReadItems read, MakeRewarder make)
    : read_(std::move(read)),
      make_(std::move(make)) {}

  /// From any thread. True: `serve` is to be called for it.
  bool put(Batch batch);

  // -- the thread that scores --
  /// Call and step of what waits longest; nothing: nothing waits.
  std::optional<std::pair<std::string, StepId>> next() const;
  /// Has what is there scored, and what comes until all is. `progress` is
  /// called at each score. What goes wrong is for those who asked, or else for
  /// the next one who asks.
  void serve(const std::atomic<bool>* stop,
             const std::function<void()>& progress);

private:
  struct Key {
    std::string call;
    StepId step;
    SampleId sample;

    auto operator<=>(const Key&) const = default;
  };
  struct Answer {
    RewardItem item;
    std::optional<RewardScore> score;
  };
  struct Asked {
    std::vector<std::shared_ptr<Answer>> answers;
    std::function<void(const GetScored&)> on_scored;
  };

  std::vector<Batch> come();
  std::vector<RewardItem> take();
  void take_batch(Batch& batch, std::vector<RewardItem>& fresh);
  void drop_before(const std::string& call, StepId step);
  void tell_scored();
  void fail(const std::exception_ptr& failure);

  ReadItems read_;
  MakeRewarder make_;
  net::WakeEvent more_;
  mutable std::mutex mutex_;
  std::vector<Batch> come_; ///< guarded, as the next
  bool awaited_ = false;    ///< a `serve` is on its way
  // of the thread that scores
  std::unique_ptr<Rewarder> rewarder_;
  std::map<Key, std::shared_ptr<Answer>> held_;   ///< offered, not asked for
  std::vector<std::shared_ptr<Answer>> numbered_; ///< of this round
  std::vector<Asked> asked_;
  std::vector<std::string> strays_;
  std::exception_ptr failure_; ///< for the next one who asks
};

} // namespace troupe::models
